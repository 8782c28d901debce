"""What was said and what the run waits for stay beside what the run did, and hide nothing of it that one looks for."""

from pathlib import Path
from urllib.parse import urlencode

import pytest
import yaml
from playwright.sync_api import Page, ViewportSize, expect

from tests.console.browsing import OpenPage
from tests.console.serving import ROOT, Served

WINDOWS: tuple[ViewportSize, ...] = (
    {"width": 360, "height": 740},
    {"width": 768, "height": 900},
    {"width": 1280, "height": 600},
    {"width": 1280, "height": 720},
    {"width": 1920, "height": 1080},
)
IS_SEEN = """row => {
  const { left, top, bottom } = row.getBoundingClientRect();
  return [top + 3, bottom - 3].every(y => row.contains(document.elementFromPoint(left + 40, y)));
}"""


@pytest.fixture
def refused(tmp_path: Path) -> Path:
    """Many rounds before one that fails, and a conversation that then waits for a question."""
    good, bad = ('{"terms": ["login"]}', "{")
    rounds = [
        {"tool_calls": [{"name": "search_manual", "id": f"call_{number}", "arguments": bad if number == 12 else good}]}
        for number in range(16)
    ]
    file = tmp_path / "refused.yaml"
    params = {"maximum_iterations": 30}
    file.write_text(yaml.safe_dump({"query": "Look.", "params": params, "turns": [*rounds, {"text": "Nothing."}]}))
    return file


def waiting_run(page: Page) -> None:
    page.get_by_role("button", name="Start", exact=True).last.click()
    page.wait_for_url("**/runs/*")
    expect(page.locator("#waiting .status")).to_have_text("Waits for a question.")


def test_an_error_and_what_a_search_finds_are_in_sight_in_any_window(
    open_page: OpenPage, console: Served, refused: Path
) -> None:
    page = open_page(
        console, f"/new?{urlencode({'source': f'script:{refused}', 'tools': ROOT / 'examples' / 'helpdesk'})}"
    )
    waiting_run(page)
    failed = page.locator(".span.error:not(:has(.span.error)) > summary").first
    seen = {}
    for size in WINDOWS:
        page.set_viewport_size(size)
        page.evaluate("scrollTo(0, 0)")
        page.get_by_role("button", name="First error").click()
        expect(failed).to_be_focused()
        error = failed.evaluate(IS_SEEN)
        page.get_by_role("searchbox").fill("round")
        expect(page.locator("#found")).to_have_text("5 rows")
        hits = []
        for number in range(1, 6):
            page.get_by_role("searchbox").press("Enter")
            expect(page.locator("#found")).to_have_text(f"{number} of 5")
            hits.append(page.locator(".hit.current > summary").evaluate(IS_SEEN))
        page.get_by_role("searchbox").fill("")
        expect(page.locator(".hit")).to_have_count(0)
        seen[size["width"], size["height"]] = (error, all(hits))
    assert set(seen.values()) == {(True, True)}, seen


def test_in_a_wide_window_the_answer_is_given_beside_what_the_run_did(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, "/new?source=example:injection/mail")
    page.get_by_role("button", name="Start", exact=True).last.click()
    page.wait_for_url("**/runs/*")
    for status in ("Waits for your approval.", "Waits for a question."):
        expect(page.locator("#waiting .status")).to_have_text(status)
        for size in WINDOWS:
            page.set_viewport_size(size)
            page.evaluate("scrollTo(0, document.body.scrollHeight)")
            if size["width"] < 1000:
                page.locator("#waiting .primary").scroll_into_view_if_needed()
            else:
                expect(page.locator("#waiting .status")).to_be_in_viewport()
            expect(page.locator("#waiting .primary")).to_be_in_viewport()
        if page.get_by_role("button", name="Approve").count():
            page.get_by_role("button", name="Approve").click()
