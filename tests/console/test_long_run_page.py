"""The page of a run with a hundred rounds, by keyboard alone: the focus is always in sight."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.console.browsing import OpenPage
from tests.console.conftest import OpenConsole
from tests.console.recording import write_traces

IN_SIGHT = """() => {
  const focused = document.activeElement;
  const { left, top, bottom, width } = focused.getBoundingClientRect();
  const shows = focused.matches(":focus-visible") && getComputedStyle(focused).outlineStyle !== "none";
  const seen = y => focused.contains(document.elementFromPoint(left + Math.min(width / 2, 60), y));
  return { shows, begin: seen(top + 4), end: seen(bottom - 4) };
}"""
ALL = {"shows": True, "begin": True, "end": True}


@pytest.fixture(scope="module")
def long_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("long") / "runs"
    runs.mkdir()
    write_traces("long_run", runs / "long.jsonl")
    return runs


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)
        assert page.evaluate(IN_SIGHT) == ALL, key


def test_from_the_list_to_the_first_error_a_search_a_copy_and_back(
    open_console: OpenConsole, open_page: OpenPage, long_runs: Path
) -> None:
    may = ["clipboard-read", "clipboard-write"]
    page = open_page(open_console(long_runs), permissions=may, viewport={"width": 1280, "height": 600})
    press(page, "Tab", "j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/runs/long$"))
    expect(page.get_by_role("button", name="First error")).to_be_visible()

    press(page, "Tab", "e")
    failed = page.locator(".span.error:not(:has(.span.error))")
    expect(failed.locator("> summary")).to_be_focused()
    expect(failed.get_by_text("the price list is locked").first).to_be_visible()
    press(page, "k", "j", "k", "k", "j", "j")
    press(page, "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowRight")

    press(page, "/")
    page.keyboard.type("alternatives, step 20")
    expect(page.locator("#found")).to_have_text(re.compile(r"^[1-9]\d* rows?$"))
    current = page.locator(".hit.current > summary")
    for _ in range(5):  # The rows of the rounds show their calls, too.
        press(page, "Enter")
        if "CALL" in current.inner_text():
            break
    press(page, "Escape")
    expect(current).to_be_focused()
    press(page, "ArrowRight")
    expect(page.locator(".hit.current pre").first).to_be_visible()
    page.keyboard.press("c")
    expect(page.locator(".copy")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "All found."
    for _ in range(30):
        press(page, "j")

    page.keyboard.press("r")
    expect(page.locator("tr[data-row]")).to_have_count(1)
