"""WCAG AA in light and dark, on a phone and on a desk, of pages in the states that people meet them in."""

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
import yaml
from playwright.sync_api import Page, expect

from tests.console.accessibility import looks_well, open_all
from tests.console.browsing import OpenPage
from tests.console.conftest import OpenConsole
from tests.console.recording import record_script, write_traces
from tests.console.serving import Served

BROKEN = """
query: Look.
turns:
  - tool_calls:
      - {name: search_manual, id: good, arguments: {terms: [login]}}
      - {name: search_manual, id: bad, arguments: "{"}
      - {name: read_document, id: gone, arguments: {document: nowhere}}
  - text: |
      # Found

      | a | b |
      |---|---|
      | 1 | `code` |

      [a link](https://example.com) and **more**.
"""
SLOWLY = [{"text": "Hello", "delay": 0.2}]
SUITE = {
    "description": "Two greetings",
    "columns": [{"name": name, "strategy": "gpt5_function_calling"} for name in ("standard", "other")],
    "cases": [
        {"name": "passes", "query": "Hi", "turns": SLOWLY, "expect": {"text": {"contains": "Hello"}}},
        {"name": "fails", "query": "Hi", "turns": SLOWLY, "expect": {"text": {"contains": "Bye"}}},
    ],
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trace = tmp_path_factory.mktemp("broken") / "broken.jsonl"
    record_script(trace, "helpdesk", BROKEN)
    return trace


def test_a_run_with_opened_calls(open_page: OpenPage, console: Served, broken: Path) -> None:
    (console.runs / broken.name).write_bytes(broken.read_bytes())
    page = open_page(console, "/runs/broken")
    expect(page.locator(".span.error").first).to_be_visible()
    open_all(page)
    expect(page.locator(".inside:empty")).to_have_count(0)
    open_all(page)  # what has come
    looks_well(page)


def test_a_suite_before_during_and_after_its_evaluation(open_page: OpenPage, console: Served) -> None:
    file = console.runs / "mine.yaml"
    file.write_text(yaml.safe_dump({**SUITE, "repeats": 1000}), encoding="utf-8")
    page = open_page(console, f"/suite?{urlencode({'file': str(file)})}")
    expect(page.get_by_role("status").filter(has_text="Not evaluated yet")).to_be_visible()
    looks_well(page)

    page.get_by_role("button", name="Run the suite").click()
    expect(page.get_by_text(re.compile(r"running [1-9][\d,]* of 4,000 runs"))).to_be_visible()
    looks_well(page)
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text(re.compile(r"interrupted [\d,]+ of 4,000 runs"))).to_be_visible()
    file.write_text(yaml.safe_dump(SUITE), encoding="utf-8")
    for _ in range(2):
        page.get_by_role("button", name="Run the suite").click()
        expect(page.get_by_text("The last evaluation: 2 of 4 runs passed")).to_be_visible()
    expect(page.get_by_text("Compared with the evaluation before")).to_be_visible()
    open_all(page)
    looks_well(page)


PAGES = (
    *("/", "/?search=nothing-has-this", "/new", "/suites", "/tools", "/gone"),
    "/tool?tools=examples/helpdesk&name=search_manual",
    *("/runs/helpdesk/again", "/runs/helpdesk/keep", "/compare/helpdesk/injection"),
)


def test_a_flow_with_its_drawing_whose_nodes_lead_to_their_rows(open_page: OpenPage, console: Served) -> None:
    flow = console.runs / "flow.jsonl"
    write_traces("flow_trace", flow)
    (console.runs / "other.jsonl").write_bytes((console.runs / "helpdesk.jsonl").read_bytes())
    page = open_page(console, "/runs/flow")
    drawing = page.get_by_role("group", name="The nodes of the flow, and the path that was taken").last
    expect(drawing).to_have_accessible_description("3 nodes. Ran: Start, Clerk. Did not run: Say sorry.")
    drawing.get_by_role("link", name="Clerk, agent: failed").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#node-2-2")).to_have_attribute("open", "")
    open_all(page)
    looks_well(page)
    page.goto(console.url("/compare/flow/other"))
    expect(page.get_by_text("These are runs of different things: the chatflow Office")).to_be_visible()
    open_all(page)
    looks_well(page)
    flow.unlink()
    (console.runs / "other.jsonl").unlink()


def test_pages_with_all_that_they_fold(page: Page, console: Served) -> None:
    for path in PAGES:
        page.goto(console.url(path))
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        open_all(page)
        looks_well(page)


def test_an_empty_list_and_one_of_broken_files(open_console: OpenConsole, open_page: OpenPage, tmp_path: Path) -> None:
    runs = tmp_path / "none"
    runs.mkdir()
    page = open_page(open_console(runs))
    expect(page.get_by_text("There is no run in this folder yet.")).to_be_visible()
    looks_well(page)

    (runs / "broken.jsonl").write_text("not a trace\n", encoding="utf-8")
    expect(page.get_by_text("1 file not shown")).to_be_visible()
    open_all(page)
    looks_well(page)


def test_a_page_that_is_refused_says_so_to_a_person(page: Page) -> None:
    page.context.clear_cookies()
    page.goto(page.url)

    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_text("open the address that `devhost ui` printed")).to_be_visible()
    looks_well(page)
