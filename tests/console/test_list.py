"""The list of runs in a browser: it finds as one types, follows the folder, and works from the keyboard."""

import re
import shutil
from pathlib import Path

from playwright.sync_api import Page, expect

from devhost.console.setup import Setup
from tests.console.browsing import OpenPage
from tests.console.conftest import OpenConsole


def test_the_list_follows_the_folder(page: Page, runs_folder: Path) -> None:
    expect(page.locator("tr[data-row]")).to_have_count(2)
    page.get_by_role("checkbox").first.check()

    Setup(values={"p.query": "What is new?"}).write(runs_folder / "new.setup.json")
    expect(page.get_by_role("link", name="What is new?")).to_be_visible()
    expect(page.get_by_role("checkbox", checked=True)).to_have_count(1)

    (runs_folder / "new.setup.json").unlink()
    expect(page.locator("tr[data-row]")).to_have_count(2)


def test_a_question_of_one_sentence_is_shown_whole(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    question = page.get_by_role("link", name="How do I set up two-factor login")

    shown = question.evaluate("each => [each.scrollWidth - each.clientWidth, each.scrollHeight - each.clientHeight]")

    assert shown == [0, 0]


def test_a_search_finds_as_one_types_and_stays_in_the_address(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("authenticator")

    expect(page.locator("tr[data-row]")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"\?search=authenticator$"))
    page.reload()
    expect(page.locator("tr[data-row]")).to_have_count(1)
    expect(page.get_by_role("searchbox")).to_have_value("authenticator")


def test_two_ticked_runs_can_be_compared(page: Page) -> None:
    compare = page.get_by_role("button", name="Compare two")
    expect(compare).to_be_disabled()
    expect(page.locator("tr[data-row]")).to_have_count(2)
    for place in range(2):
        page.get_by_role("checkbox", name="Choose").nth(place).check()
    expect(compare).to_be_enabled()

    compare.click()

    expect(page).to_have_url(re.compile("/compare/(helpdesk/injection|injection/helpdesk)$"))


def test_from_the_list_to_an_opened_call_by_keyboard_alone(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("authenticator")
    expect(page.locator("tr[data-row]")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(page.locator("tr[data-row] a.open")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/runs/helpdesk$"))

    call = page.locator("summary", has_text="CALL search_manual").first
    for _ in range(200):
        if call.evaluate("summary => summary === document.activeElement"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.get_by_text("two-factor").first).to_be_visible()
    assert call.evaluate("summary => summary.parentElement.open || summary.getAttribute('aria-expanded') === 'true'")


def test_a_thousand_runs_are_listed_and_searched(
    open_console: OpenConsole, open_page: OpenPage, recorded: Path, tmp_path: Path
) -> None:
    runs = tmp_path / "many"
    runs.mkdir()
    for number in range(999):
        shutil.copy(recorded / "helpdesk.jsonl", runs / f"run-{number}.jsonl")
    shutil.copy(recorded / "injection.jsonl", runs / "other.jsonl")

    page = open_page(open_console(runs))

    expect(page.get_by_text("of 1,000")).to_be_visible()
    expect(page.locator("tr[data-row]")).to_have_count(50)
    page.get_by_role("searchbox").fill("other")
    expect(page.locator("tr[data-row]")).to_have_count(1)
    page.get_by_role("searchbox").fill("authenticator")
    page.get_by_role("link", name="Older").click()
    expect(page.get_by_text("51–100 of 999")).to_be_visible()
