"""Run again with a change, and see both runs side by side: in a browser."""

import fcntl
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.console.browsing import OpenPage
from tests.console.serving import Served

CHANGED = "Answer in one sentence."


def test_a_changed_instruction_leads_to_both_runs_side_by_side(page: Page) -> None:
    page.goto(f"{page.url}runs/helpdesk")
    page.get_by_role("link", name="Run again with a change").click()
    page.get_by_label("after round 1, which calls").check()
    page.get_by_label("Instruction").first.fill(CHANGED)
    page.get_by_role("button", name="Run again").last.click()

    expect(page).to_have_url(re.compile(r"/compare/helpdesk/[^/]+-again-[0-9a-f]+$"))
    expect(page.get_by_role("status")).to_contain_text("ended")
    expect(page.locator("ins, .came").filter(has_text=CHANGED).first).to_be_visible()
    expect(page.get_by_role("heading", name="Numbers")).to_be_visible()


def test_the_command_below_the_form_is_that_of_what_stands_in_it(page: Page) -> None:
    page.goto(f"{page.url}runs/helpdesk/again")
    page.get_by_text("The same in a terminal").click()
    page.get_by_label("Instruction").first.fill(CHANGED)
    expect(page.get_by_label("Command")).to_contain_text(f"--instruction '{CHANGED}'")

    page.get_by_label("the turns of a script").check()
    expect(page.get_by_label("Command")).to_be_hidden()  # until there is one
    page.get_by_label("Script", exact=True).select_option("examples/helpdesk/script.yaml")
    expect(page.get_by_label("Command")).to_contain_text("--script examples/helpdesk/script.yaml")

    page.get_by_label("Question", exact=True).fill("Why?")
    expect(page.get_by_label("Command")).to_contain_text("--param 'query=Why?'")


def test_a_run_that_goes_on_grows_below_the_comparison(open_page: OpenPage, console: Served, runs_folder: Path) -> None:
    lines = (runs_folder / "helpdesk.jsonl").read_bytes().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if b"ROUND 2" in line)
    with (console.runs / "growing.jsonl").open("wb") as growing:
        fcntl.flock(growing, fcntl.LOCK_SH)  # as the process that writes a trace holds it
        growing.writelines(lines[:first])
        growing.flush()
        page = open_page(console, "/compare/helpdesk/growing")
        expect(page.get_by_role("heading", name="What the second run does")).to_be_visible()
        expect(page.locator("#runs .span > summary", has_text="ROUND 1")).to_be_visible()
        expect(page.locator("#runs .span > summary", has_text="ROUND 2")).to_have_count(0)

        growing.writelines(lines[first:])
        growing.flush()
        expect(page.locator("#runs .span > summary", has_text="ROUND 2")).to_be_visible()
