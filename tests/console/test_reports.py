"""The pages that commands write, in a browser: WCAG AA in light and dark, room for labels, groups, and a print."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, Protocol

import pytest
from playwright.sync_api import Browser, Page

from support.nesting import nested
from tests.console.accessibility import axe, overflow
from tests.console.recording import DEVHOST, ROOT

WIDTHS = (360, 620, 860, 1280, 1920)
OPEN_ALL = "document.querySelectorAll('details').forEach(each => each.open = true)"
CASE = """
example: helpdesk
columns: [{name: standard, strategy: gpt5_function_calling}, {name: short, strategy: gpt5_function_calling}]
cases:
  - {name: passes, scenario: single-topic, expect: {rounds: 3}}
  - {name: fails, scenario: single-topic, expect: {text: {contains: [never said]}}}
"""
type Scheme = Literal["light", "dark"]


class OpenReport(Protocol):
    def __call__(self, name: str, scheme: Scheme = "light") -> Page: ...


@pytest.fixture(scope="module")
def reports(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with run.html, long.html, deep.html, flow.html, fork.html and evaluation.html."""
    folder = tmp_path_factory.mktemp("reports")
    trace, cases = recorded / "helpdesk.jsonl", folder / "evaluation.yaml"
    cases.write_text(CASE, encoding="utf-8")
    run([sys.executable, "-m", "tests.console.long_run", str(folder / "long.jsonl")])
    run([*DEVHOST, "report", str(folder / "long.jsonl")])
    (folder / "deep.jsonl").write_bytes(nested(trace.read_bytes(), 60))
    run([*DEVHOST, "report", str(folder / "deep.jsonl")])
    run([sys.executable, "-m", "tests.console.flow_trace", str(folder / "flow.jsonl")])
    run([*DEVHOST, "report", str(folder / "flow.jsonl")])
    run([*DEVHOST, "report", str(trace), "-o", str(folder / "run.html")])
    fork = ["fork", str(trace), "--at", "1", "--instruction", "Be brief.", "--scripted"]
    run([*DEVHOST, *fork, "--report", str(folder / "fork.html")])
    evaluation = ["eval", str(cases), "--examples", str(ROOT / "examples"), "--scripted"]
    run([*DEVHOST, *evaluation, "--report", str(folder / "evaluation.html")], code=1)
    return folder


def run(command: Sequence[str], code: int = 0) -> None:
    ran = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert ran.returncode == code, ran.stdout


@pytest.fixture
def open_report(browser: Browser, reports: Path) -> Iterator[OpenReport]:
    pages: list[Page] = []

    def opened(name: str, scheme: Scheme = "light") -> Page:
        page = browser.new_page(color_scheme=scheme)
        pages.append(page)
        page.goto((reports / name).as_uri())
        return page

    yield opened
    for page in pages:
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["run.html", "fork.html", "evaluation.html", "flow.html"])
def test_a_report_keeps_wcag_aa_with_all_that_it_folds(open_report: OpenReport, name: str, scheme: Scheme) -> None:
    page = open_report(name, scheme)
    page.evaluate(OPEN_ALL)
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert axe(page, "wcag22aa", "best-practice") == [], width


@pytest.mark.parametrize("name", ["run.html", "long.html", "fork.html", "evaluation.html", "flow.html"])
def test_no_report_is_wider_than_its_window(open_report: OpenReport, name: str) -> None:
    page = open_report(name)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert overflow(page) == 0, width
    page.evaluate(OPEN_ALL)
    page.set_viewport_size({"width": 360, "height": 900})
    assert overflow(page) == 0


CUT = """() => [...document.querySelectorAll('.words b')].filter(each => each.checkVisibility()).filter(
  each => each.scrollHeight > each.clientHeight + 1 || each.scrollWidth > each.clientWidth + 1 || each.clientWidth < 30
).map(each => each.textContent)"""


@pytest.mark.parametrize("name", ["run.html", "long.html", "deep.html"])
def test_labels_have_room(open_report: OpenReport, name: str) -> None:
    page = open_report(name)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(CUT) == [], width


def test_groups_of_a_long_run_fold_and_the_keyboard_opens_them(open_report: OpenReport) -> None:
    page = open_report("long.html")
    folded = page.locator(".span.group:not([open]) > summary", has_text="1. the spare parts")
    rounds = page.locator(".span", has=page.get_by_text("1. the spare parts", exact=False)).get_by_text(
        "ROUND 2", exact=True
    )
    assert not rounds.first.is_visible()
    folded.focus()
    page.keyboard.press("Enter")
    assert page.get_by_text("ATTEMPT 1", exact=True).first.is_visible()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "the focus is visible"


def test_a_print_shows_the_rows_of_folded_groups(open_report: OpenReport) -> None:
    page = open_report("long.html")
    count = "() => [...document.querySelectorAll('.span')].filter(each => each.checkVisibility()).length"
    shown, rows = page.evaluate(count), page.locator(".span").count()
    assert shown < rows
    page.emulate_media(media="print")
    assert page.evaluate(count) == rows
