"""The page of a run: it grows while the run goes on, and keeps what the person has opened."""

import json
import re
from pathlib import Path

from playwright.sync_api import expect

from tests.console.browsing import OpenPage
from tests.console.recording import write_traces
from tests.console.serving import Served

REFUSED = """
query: Look.
turns:
  - tool_calls: [{name: search_manual, id: call_1, arguments: "{"}]
  - text: Nothing.
"""


def test_the_answer_streams_and_the_timeline_grows_under_it(
    open_page: OpenPage, console: Served, runs_folder: Path
) -> None:
    lines = (runs_folder / "helpdesk.jsonl").read_bytes().splitlines(keepends=True)
    growing = console.runs / "growing.jsonl"
    growing.write_bytes(lines[0])
    page = open_page(console, "/runs/growing")
    expect(page.get_by_text("Nothing has run yet.")).to_be_visible()

    third, half = len(lines) // 3, len(lines) // 2
    growing.write_bytes(b"".join(lines[:third]))
    first_round = page.locator(".span > summary", has_text="ROUND 1")
    expect(first_round).to_be_visible()
    expect(page.get_by_text("not ended").first).to_be_visible()
    model = page.locator(".span.model > summary").first
    model.click()
    expect(page.get_by_role("heading", name="Prompt").or_(page.get_by_text("Prompt", exact=True)).first).to_be_visible()

    growing.write_bytes(b"".join(lines[:half]))
    growing.write_bytes(b"".join(lines))

    expect(page.locator(".span > summary", has_text="ROUND 2")).to_be_visible()
    expect(page.get_by_text("RUN FINISHED: answered")).to_be_visible()
    expect(page.locator(".answer", has_text="Two-factor login with an authenticator app")).to_be_visible()
    assert model.locator("..").get_attribute("open") is not None, "what the person opened was closed"
    expect(page.get_by_text("finished", exact=True)).to_be_visible()


def test_a_run_that_writes_over_a_trace_takes_the_place_of_all_its_turns(
    open_page: OpenPage, console: Served, runs_folder: Path
) -> None:
    header, rest = (runs_folder / "helpdesk.jsonl").read_bytes().split(b"\n", 1)
    session = json.loads(rest.splitlines()[-1])["session_id"].encode()
    file = console.runs / "overwritten.jsonl"
    file.write_bytes(b"\n".join([header, rest + rest.replace(session, b"another")]))
    page = open_page(console, "/runs/overwritten")
    expect(page.locator(".run")).to_have_count(2)

    again = json.dumps({**json.loads(header), "started": "2030-01-01T00:00:00Z"}).encode()
    file.write_bytes(b"\n".join([again, rest.replace(b"Two-factor login with", b"Another answer about")]))

    expect(page.locator(".run")).to_have_count(1)
    expect(page.locator(".answer", has_text="Another answer about")).to_be_visible()


def test_an_open_row_that_gets_children_shows_them(open_page: OpenPage, console: Served, runs_folder: Path) -> None:
    lines = (runs_folder / "helpdesk.jsonl").read_bytes().splitlines(keepends=True)
    begun = next(number for number, line in enumerate(lines, start=1) if b"ROUND 1" in line)
    growing = console.runs / "growing.jsonl"
    growing.write_bytes(b"".join(lines[:begun]))
    page = open_page(console, "/runs/growing")
    page.locator(".span > summary", has_text="ROUND 1").click()
    expect(page.locator(".span > .inside:not(:empty)")).not_to_be_empty()

    growing.write_bytes(b"".join(lines))

    expect(page.locator(".span.open-end")).to_have_count(0)
    round_1 = page.locator(".span.group").filter(has=page.locator("summary", has_text="ROUND 1"))
    expect(round_1.locator("> .children > .span.model > summary")).to_be_visible()


def test_rows_are_searched_folded_and_walked_with_the_keyboard(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, "/runs/injection")
    rounds = page.locator(".span.group > summary")
    expect(rounds.first).to_be_visible()

    page.keyboard.press("/")
    page.keyboard.type("round")
    expect(page.locator("#found")).to_have_text(re.compile(r"^\d+ rows$"))
    page.keyboard.press("Enter")
    expect(page.locator(".hit.current")).to_have_count(1)
    expect(page.locator("#found")).to_have_text(re.compile(r"^1 of \d+$"))
    page.keyboard.press("Escape")
    expect(page.locator(".hit.current > summary")).to_be_focused()
    expect(rounds.first).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".span.group").first).not_to_have_attribute("open", "")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".span.group").first).to_have_attribute("open", "")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".span.model > .inside:not(:empty)").first).to_contain_text("prompt")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(rounds.first).to_be_focused()


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


def test_enter_goes_to_a_row_of_what_was_typed_last(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, "/runs/helpdesk")
    expect(page.locator(".span.group > summary").first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("round")
    expect(page.locator("#found")).to_have_text(re.compile(r"^\d+ rows$"))

    page.keyboard.type(" 2")
    page.keyboard.press("Enter")

    expect(page.locator(".hit.current > summary")).to_contain_text("ROUND 2")


def test_texts_are_copied(open_page: OpenPage, console: Served) -> None:
    page = open_page(console, "/runs/helpdesk", permissions=["clipboard-read", "clipboard-write"])
    expect(page.locator("#row-tools")).to_be_visible()

    page.keyboard.press("c")
    expect(page.locator(".copy")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()").startswith("Two-factor login")

    page.locator(".span.tool > summary").first.click()
    arguments = page.locator(".span.tool .inside pre").first
    arguments.hover()
    page.get_by_role("button", name="Copy").click()
    expect(page.locator(".copy")).to_have_text("Copied")
    assert '"terms"' in page.evaluate("navigator.clipboard.readText()")
