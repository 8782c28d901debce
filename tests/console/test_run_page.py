"""The page of a run: it grows while the run goes on, and keeps what the person has opened."""

from pathlib import Path

from playwright.sync_api import expect

from tests.console.browsing import OpenPage
from tests.console.serving import Served


def test_the_answer_streams_and_the_timeline_grows_under_it(
    open_page: OpenPage, console: Served, runs_folder: Path
) -> None:
    lines = (runs_folder / "helpdesk.jsonl").read_bytes().splitlines(keepends=True)
    growing = console.runs / "growing.jsonl"
    growing.write_bytes(lines[0])
    page = open_page(console, "/runs/growing")
    expect(page.get_by_text("The strategy was not asked yet.")).to_be_visible()

    third, half = len(lines) // 3, len(lines) // 2
    growing.write_bytes(b"".join(lines[:third]))
    first_round = page.locator("summary", has_text="ROUND 1")
    expect(first_round).to_be_visible()
    expect(page.get_by_text("not ended").first).to_be_visible()
    model = page.locator(".span.model > summary").first
    model.click()
    expect(page.get_by_role("heading", name="Prompt").or_(page.get_by_text("Prompt", exact=True)).first).to_be_visible()

    growing.write_bytes(b"".join(lines[:half]))
    growing.write_bytes(b"".join(lines))

    expect(page.locator("summary", has_text="ROUND 2")).to_be_visible()
    expect(page.get_by_text("RUN FINISHED: answered")).to_be_visible()
    expect(page.get_by_text("Two-factor login with an authenticator app").last).to_be_visible()
    assert model.locator("..").get_attribute("open") is not None, "what the person opened was closed"
    expect(page.get_by_text("finished", exact=True)).to_be_visible()
