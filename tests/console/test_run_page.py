"""The page of a run: it grows while the run goes on, and keeps what the person has opened."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.console.browsing import OpenPage
from tests.console.recording import write_traces
from tests.console.serving import Served

SELECT = """selector => {
  const range = document.createRange();
  range.selectNodeContents(document.querySelector(selector));
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}"""
SELECTED = "getSelection().toString()"
ANSWERED = """() => {
  const send = XMLHttpRequest.prototype.send;
  XMLHttpRequest.prototype.send = function (...given) {
    const rows = () => this.responseURL.includes("/rows/") && document.body.classList.add("answered");
    this.addEventListener("loadend", rows);
    return send.apply(this, given);
  };
}"""


@pytest.fixture
def lines(runs_folder: Path) -> list[bytes]:
    return (runs_folder / "helpdesk.jsonl").read_bytes().splitlines(keepends=True)


@pytest.fixture
def growing(console: Served) -> Path:
    return console.runs / "growing.jsonl"


def test_a_run_grows_and_keeps_what_is_opened_focused_and_selected(
    open_page: OpenPage, console: Served, growing: Path, lines: list[bytes]
) -> None:
    growing.write_bytes(lines[0])
    page = open_page(console, "/runs/growing")
    expect(page.get_by_text("Nothing has run yet.")).to_be_visible()

    growing.write_bytes(b"".join(lines[: len(lines) // 2]))
    expect(page.get_by_text("not ended").first).to_be_visible()
    model = page.locator(".span.model > summary").first
    model.click()
    page.locator(".span.model pre").first.wait_for()
    page.evaluate(SELECT, ".span.model pre")
    selected = page.evaluate(SELECTED)
    assert selected

    growing.write_bytes(b"".join(lines))

    expect(page.get_by_text("ENDED: answered")).to_be_visible()
    expect(page.locator(".answer", has_text="Two-factor login with an authenticator app")).to_be_visible()
    expect(page.get_by_text("finished", exact=True)).to_be_visible()
    expect(model).to_be_focused()
    expect(page.locator(".span.model pre").first).to_be_visible()
    assert page.evaluate(SELECTED) == selected


def test_an_open_row_that_goes_on_shows_what_comes(
    open_page: OpenPage, console: Served, growing: Path, lines: list[bytes]
) -> None:
    begun = next(number for number, line in enumerate(lines, start=1) if b"ROUND 1" in line)
    growing.write_bytes(b"".join(lines[:begun]))
    page = open_page(console, "/runs/growing")
    page.locator(".span > summary", has_text="ROUND 1").click()
    expect(page.locator(".span > .inside:not(:empty)")).not_to_be_empty()
    asked = max(number for number, line in enumerate(lines, start=1) if b'"type": "llm"' in line)
    growing.write_bytes(b"".join(lines[:asked]))
    last = page.locator(".span.model").last
    last.locator("> summary").click()
    expect(last.locator(".inside")).to_contain_text("prompt")
    expect(last.locator(".inside")).not_to_contain_text("Two-factor login with an authenticator app")

    growing.write_bytes(b"".join(lines))

    expect(page.locator(".span.open-end")).to_have_count(0)
    round_1 = page.locator(".span.group").filter(has=page.locator("summary", has_text="ROUND 1"))
    expect(round_1.locator("> .children > .span.model > summary")).to_be_visible()
    expect(last.locator(".inside")).to_contain_text("Two-factor login with an authenticator app")


def test_what_a_group_held_before_it_had_rows_comes_into_no_row(
    open_page: OpenPage, console: Served, growing: Path, lines: list[bytes]
) -> None:
    """The answer for the group arrives when its rows stand in its place."""
    begun = next(number for number, line in enumerate(lines, start=1) if b"ROUND 1" in line)
    growing.write_bytes(b"".join(lines[:begun]))
    page = open_page(console, "/runs/growing")
    held = list[Route]()

    def hold(route: Route) -> None:
        held.append(route)

    page.evaluate(ANSWERED)
    page.route("**/rows/**", hold)
    page.locator(".span > summary", has_text="ROUND 1").click()
    growing.write_bytes(b"".join(lines))
    round_1 = page.locator(".span.group").filter(has=page.locator("summary", has_text="ROUND 1"))
    expect(round_1.locator("> .children > .span.model")).to_have_count(1)

    for route in held:
        route.continue_()
    page.locator("body.answered").wait_for()

    expect(round_1.locator("> .children > .asked")).to_have_count(0)
    expect(round_1.locator("> .children > .span.model > summary")).to_be_visible()


def test_all_that_a_run_or_a_flow_has_is_unfolded_and_folded(
    open_page: OpenPage, console: Served, runs_folder: Path
) -> None:
    write_traces("flow_trace", runs_folder / "flow.jsonl")
    for run, value in (("injection", "prompt"), ("flow", "Inputs")):
        page = open_page(console, f"/runs/{run}")
        page.get_by_role("button", name="Unfold all", exact=True).click()
        expect(page.locator("#runs .span:not([open])")).to_have_count(0)
        expect(page.locator("#runs .inside:visible").first).to_contain_text(value)
        expect(page.locator("#runs .inside:empty")).to_have_count(0)
        page.get_by_role("button", name="Fold all", exact=True).click()
        expect(page.locator("#runs .span[open]")).to_have_count(0)


def test_a_long_run_leads_to_its_first_error_and_to_words_which_are_copied(
    open_page: OpenPage, console: Served, runs_folder: Path
) -> None:
    write_traces("long_run", runs_folder / "long.jsonl")
    page: Page = open_page(console, "/runs/long", viewport={"width": 1280, "height": 600})

    page.get_by_role("button", name="First error").click()

    failed = page.locator(".span.error:not(:has(.span.error))")
    expect(failed.locator("> summary")).to_be_focused()
    expect(failed.locator("> summary")).to_be_in_viewport()
    expect(failed.get_by_text("the price list is locked").first).to_be_visible()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    failed.locator("pre").first.hover()
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == {"topic": "what late orders cost, step 17"}
    search = page.get_by_role("searchbox")
    for words, found in (
        ("no such words", "in no row"),
        ("LOCKED price", "row 1 of 3"),
        ("LOCKED price", "row 2 of 3"),
    ):
        search.fill(words)
        search.press("Enter")
        expect(page.locator("#found")).to_have_text(found)
    expect(page.locator(".span.model.hit pre").filter(has_text="the price list is locked").first).to_be_visible()
    search.fill("call submit_plan")
    search.press("Enter")
    expect(page.locator("#found")).to_have_text("row 1 of 1")
    expect(page.locator(".span.hit details.prompt")).to_have_attribute("open", "")
    page.goto(console.url("/runs/helpdesk"))
    expect(page.get_by_role("button", name="Fold all", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="First error")).to_be_hidden()
