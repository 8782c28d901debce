"""What a person does on a page survives what the console puts in: search, focus, selection, opened rows."""

import re
import shutil
import signal
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from devhost.console.setup import Setup
from tests.console.browsing import OpenPage
from tests.console.conftest import OpenConsole
from tests.console.serving import Served

SELECT = """selector => {
  const range = document.createRange();
  range.selectNodeContents(document.querySelector(selector));
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}"""
ASKS_A_MODEL = b'"data": {"type": "invoke", "data": {"type": "llm"'
SELECTED = "getSelection().toString()"


@pytest.fixture
def lines(runs_folder: Path) -> list[bytes]:
    return (runs_folder / "helpdesk.jsonl").read_bytes().splitlines(keepends=True)


@pytest.fixture
def growing(console: Served) -> Path:
    return console.runs / "growing.jsonl"


def lines_until(lines: list[bytes], words: bytes, time: int = 1) -> int:
    """How many lines there are when the words come for the first time, or another."""
    return [number for number, line in enumerate(lines, start=1) if words in line][time - 1]


def test_a_search_marks_the_rows_that_arrive_also_when_an_older_answer_comes_last(
    open_page: OpenPage, console: Served, growing: Path, lines: list[bytes]
) -> None:
    growing.write_bytes(b"".join(lines[: lines_until(lines, b"ROUND 1")]))
    page = open_page(console, "/runs/growing")
    expect(page.locator("#row-tools")).to_be_visible()
    held: list[Route] = []

    def hold_the_first(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route("**/search?*", hold_the_first)
    with page.expect_request("**/search?*"):
        page.get_by_role("searchbox").fill("round")
    growing.write_bytes(b"".join(lines))
    expect(page.locator(".hit > summary", has_text="ROUND")).to_have_count(2)

    with page.expect_response("**/search?*"):
        held[0].fulfill(json=[])
    page.evaluate("() => new Promise(requestAnimationFrame)")

    expect(page.locator(".hit > summary", has_text="ROUND")).to_have_count(2)
    expect(page.locator("#found")).to_have_text(re.compile(r"^[1-9]\d* rows$"))


def test_an_opened_row_the_focus_and_a_selection_survive_what_arrives(
    open_page: OpenPage, console: Served, growing: Path, lines: list[bytes]
) -> None:
    growing.write_bytes(b"".join(lines[: lines_until(lines, ASKS_A_MODEL, time=2)]))
    page = open_page(console, "/runs/growing")
    page.locator(".span.model > summary").first.click()
    page.locator(".span.model pre").first.wait_for()
    page.evaluate(SELECT, ".span.model pre")
    selected = page.evaluate(SELECTED)
    page.locator(".span.model > summary").first.focus()

    growing.write_bytes(b"".join(lines))

    expect(page.get_by_text("RUN FINISHED: answered")).to_be_visible()
    expect(page.locator(".span.model > summary").first).to_be_focused()
    assert page.locator(".span.model pre").first.is_visible()
    assert (page.evaluate(SELECTED), selected) == (selected, selected)
    assert selected


def test_a_row_that_becomes_another_one_passes_the_focus_on(
    open_page: OpenPage, console: Served, growing: Path, lines: list[bytes]
) -> None:
    """A call stands alone until the entry that ends with it names it."""
    asked = lines_until(lines, ASKS_A_MODEL, time=2)
    entries = [line for line in lines[:asked] if b'"label": "CALL' in line]
    begun = [line for line in lines[:asked] if line not in entries]
    growing.write_bytes(b"".join(begun))
    page = open_page(console, "/runs/growing")
    page.locator(".span.tool > summary").last.focus()
    assert entries

    growing.write_bytes(b"".join([*begun, *entries, *lines[asked:]]))

    expect(page.get_by_text("RUN FINISHED: answered")).to_be_visible()
    assert page.evaluate("document.activeElement.matches('#runs summary')")


def test_the_list_keeps_the_focus_a_selection_and_what_is_open(page: Page, runs_folder: Path) -> None:
    (runs_folder / "broken.jsonl").write_text("not a trace\n", encoding="utf-8")
    problems = page.locator("details.problems")
    expect(problems).to_be_visible()
    problems.locator("summary").click()
    link = page.locator("a.open[href='/runs/helpdesk']")
    link.focus()
    page.evaluate(SELECT, "a.open[href='/runs/injection']")
    selected = page.evaluate(SELECTED)

    Setup(values={"p.query": "What is new?"}).write(runs_folder / "new.setup.json")
    expect(page.get_by_role("link", name="What is new?")).to_be_visible()

    expect(link).to_be_focused()
    expect(problems).to_have_attribute("open", "")
    assert page.evaluate(SELECTED) == selected
    (runs_folder / "new.setup.json").unlink()
    expect(page.locator("tr[data-row]")).to_have_count(2)
    expect(link).to_be_focused()


def test_the_focus_goes_on_when_the_row_that_has_it_is_deleted(page: Page, runs_folder: Path) -> None:
    page.locator("a.open[href='/runs/helpdesk']").focus()

    shutil.move(runs_folder / "helpdesk.jsonl", runs_folder.with_name("moved.jsonl"))

    expect(page.locator("tr[data-row]")).to_have_count(1)
    assert page.evaluate("document.activeElement.closest('#found') !== null")


def test_the_list_drops_an_answer_that_would_come_after_a_later_one(page: Page) -> None:
    dropped: list[str] = []
    page.on("requestfailed", lambda request: dropped.append(request.url))
    page.route("**/?search=nothing-has*", lambda _: None)  # it is never answered
    with page.expect_request("**/?search=nothing-has*"):
        page.get_by_role("searchbox").fill("nothing-has-this")
    page.get_by_role("searchbox").fill("authenticator")
    expect(page.locator("tr[data-row]")).to_have_count(1)

    assert ["nothing-has" in address for address in dropped] == [True]


def test_pages_say_that_the_console_has_ended(
    open_page: OpenPage, open_console: OpenConsole, recorded: Path, tmp_path: Path
) -> None:
    console = open_console(shutil.copytree(recorded, tmp_path / "runs"))
    pages = [open_page(console, path) for path in ("/", "/runs/helpdesk")]
    console.process.send_signal(signal.SIGINT)

    for page in pages:
        expect(page.get_by_text("The console does not answer.")).to_be_visible()


def test_a_page_says_that_another_console_needs_its_own_token(page: Page) -> None:
    page.context.clear_cookies()

    expect(page.get_by_text("Open the address that it printed")).to_be_visible()
