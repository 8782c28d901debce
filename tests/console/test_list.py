"""The list of runs in a browser: it finds as one types, and follows the folder without disturbing the person."""

import re
import shutil
import signal
from pathlib import Path

from playwright.sync_api import Page, expect

from devhost.console.setup import Setup
from tests.console.browsing import OpenPage
from tests.console.conftest import OpenConsole


def test_the_list_follows_the_folder_and_keeps_what_is_focused_ticked_and_open(page: Page, runs_folder: Path) -> None:
    (runs_folder / "broken.jsonl").write_text("not a trace\n", encoding="utf-8")
    page.locator("details.problems summary").click()
    page.get_by_role("checkbox").first.check()
    link = page.locator("a.open[href='/runs/helpdesk']")
    link.focus()
    heights = page.locator(".runs .badge").evaluate_all("(badges) => badges.map((each) => each.offsetHeight)")
    assert max(heights) < 45, "at most two lines"

    Setup(values={"p.query": "What is new?"}).write(runs_folder / "new.setup.json")
    expect(page.get_by_role("link", name="What is new?")).to_be_visible()
    expect(page.get_by_role("checkbox", checked=True)).to_have_count(1)
    expect(link).to_be_focused()
    expect(page.locator("details.problems")).to_have_attribute("open", "")

    (runs_folder / "new.setup.json").unlink()
    expect(page.locator(".runs tbody tr")).to_have_count(2)


def test_a_search_finds_as_one_types_and_stays_in_the_address(page: Page) -> None:
    page.route("**/?search=nothing-has*", lambda _: None)  # it is never answered
    with page.expect_request("**/?search=nothing-has*"):
        page.get_by_role("searchbox").fill("nothing-has-this")
    page.get_by_role("searchbox").fill("authenticator")

    expect(page.locator(".runs tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"\?search=authenticator$"))
    page.reload()
    expect(page.locator(".runs tbody tr")).to_have_count(1)
    expect(page.get_by_role("searchbox")).to_have_value("authenticator")


def test_ticked_runs_are_compared_or_deleted(page: Page, runs_folder: Path) -> None:
    compare, delete = (page.get_by_role("button", name=name) for name in ("Compare two", "Delete"))
    expect(delete).to_be_disabled()
    page.get_by_role("checkbox", name="Choose").first.check()
    expect(compare).to_be_disabled()
    page.get_by_role("checkbox", name="Choose").last.check()
    compare.click()
    expect(page).to_have_url(re.compile("/compare/(helpdesk/injection|injection/helpdesk)$"))

    page.get_by_role("link", name="Runs", exact=True).first.click()
    page.get_by_role("checkbox", name="Choose").first.check()
    delete.click()
    expect(page.locator(".runs tbody tr")).to_have_count(1)
    assert len(list((runs_folder / "deleted").iterdir())) >= 1


def test_a_thousand_runs_are_listed_and_searched(
    open_console: OpenConsole, open_page: OpenPage, recorded: Path, tmp_path: Path
) -> None:
    runs = tmp_path / "many"
    runs.mkdir()
    for number in range(999):
        shutil.copy(recorded / "helpdesk.jsonl", runs / f"run-{number}.jsonl")
    shutil.copy(recorded / "injection.jsonl", runs / "other.jsonl")

    page = open_page(open_console(runs))

    expect(page.get_by_text("The newest 100 of 1,000")).to_be_visible()
    page.get_by_role("searchbox").fill("other")
    expect(page.locator(".runs tbody tr")).to_have_count(1)


def test_pages_say_that_the_console_has_ended_or_needs_its_token(
    open_page: OpenPage, open_console: OpenConsole, recorded: Path, tmp_path: Path
) -> None:
    console = open_console(shutil.copytree(recorded, tmp_path / "runs"))
    pages = [open_page(console, path) for path in ("/", "/runs/helpdesk")]
    pages[0].context.clear_cookies()
    expect(pages[0].get_by_text("Open the address that it printed")).to_be_visible()
    console.process.send_signal(signal.SIGINT)

    for page in pages:
        expect(page.get_by_text("The console does not answer.")).to_be_visible()
