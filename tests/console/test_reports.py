"""The pages that commands write, in a browser: WCAG AA in light and dark, room for labels, groups, and a print."""

import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from support.chromium import screenshot
from tests.console.accessibility import WIDTHS, looks_well, open_all, overflow
from tests.console.recording import DEVHOST, ROOT, record_script, write_traces

CASE = """
example: helpdesk
columns: [{name: standard, strategy: gpt5_function_calling}, {name: short, strategy: gpt5_function_calling}]
cases:
  - {name: passes, scenario: single-topic, expect: {rounds: 3}}
  - {name: fails, scenario: single-topic, expect: {text: {contains: [never said]}}}
"""
TALK = """
query: Confirm the choir's booking.
params: {approval_required: send_mail}
turns:
  - tool_calls: [{name: read_document, id: call_read, arguments: {id: inbox/booking-choir}}]
  - tool_calls: [{name: send_mail, id: call_mail, arguments: {to: choir@st-anne.example, subject: Booking, body: Yes.}}]
then:
  - {query: "yes", turns: [{text: The mail is sent.}]}
"""
type OpenReport = Callable[[str], Page]


@pytest.fixture(scope="module")
def reports(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with run.html, talk.html, long.html, two.html, flow.html, fork.html and evaluation.html."""
    folder = tmp_path_factory.mktemp("reports")
    trace = recorded / "helpdesk.jsonl"
    cases = folder / "evaluation.yaml"
    cases.write_text(CASE, encoding="utf-8")
    write_traces("long_run", folder / "long.jsonl", folder / "two.jsonl")
    write_traces("flow_trace", folder / "flow.jsonl")
    record_script(folder / "talk.jsonl", "injection", TALK)
    for name in ("talk", "long", "two", "flow"):
        run([*DEVHOST, "report", str(folder / f"{name}.jsonl")])
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

    def opened(name: str) -> Page:
        page = browser.new_page()
        pages.append(page)
        page.goto((reports / name).as_uri())
        return page

    yield opened
    for page in pages:
        page.close()


@pytest.mark.parametrize("name", ["run.html", "fork.html", "evaluation.html", "flow.html"])
def test_a_report_looks_well_with_all_that_it_folds_and_fits_its_window(open_report: OpenReport, name: str) -> None:
    page = open_report(name)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert overflow(page) == 0, width
    open_all(page)
    looks_well(page)


def test_a_conversation_of_two_turns_is_at_most_two_screens_long(open_report: OpenReport) -> None:
    page = open_report("talk.html")
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.locator(".timeline").count() == 2
    assert page.evaluate("document.documentElement.scrollHeight") <= 2 * 800


CUT = """() => [...document.querySelectorAll('.words b')].filter(each => each.checkVisibility()).filter(
  each => each.scrollHeight > each.clientHeight + 1 || each.scrollWidth > each.clientWidth + 1 || each.clientWidth < 30
).map(each => each.textContent)"""


@pytest.mark.parametrize("name", ["run.html", "long.html"])
def test_labels_have_room(open_report: OpenReport, name: str) -> None:
    page = open_report(name)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert (page.evaluate(CUT), overflow(page)) == ([], 0), width


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
    shown = page.evaluate(count)
    rows = page.locator(".span").count()
    assert shown < rows
    page.emulate_media(media="print")
    assert page.evaluate(count) == rows


BOXES = """selector => [...document.querySelectorAll(selector)].map(each => {
  const { left, right, top, bottom } = each.getBoundingClientRect();
  const label = each.closest("summary")?.querySelector(".name b")?.textContent;
  return { label, left, right, top, bottom };
})"""


def test_bars_are_at_their_times_and_those_of_concurrent_calls_below_each_other(open_report: OpenReport) -> None:
    page = open_report("two.html")
    all_bars: list[dict[str, Any]] = []
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 1000})
        all_bars = page.evaluate(BOXES, ".bar")
        tea, rice = [bar for bar in all_bars if bar["label"] == "CALL look"]
        assert tea["left"] < rice["right"]
        assert rice["left"] < tea["right"]
        assert tea["bottom"] <= rice["top"]
    bars = {bar["label"]: bar for bar in all_bars}
    tracks = page.evaluate(BOXES, ".track")
    first = bars["ROUND 1"]
    second = bars["ROUND 2"]
    call = bars["CALL look"]
    track = tracks[0]
    assert first["left"] <= call["left"] < call["right"] <= first["right"] + 4
    assert first["right"] <= second["left"] + 4
    assert len({(each["left"], each["right"]) for each in tracks}) == 1
    for bar in all_bars:
        if bar["label"] != "ENDED: answered":  # a mark, with its middle on its time
            assert track["left"] <= bar["left"] < bar["right"] <= track["right"] + 0.5


def test_a_picture_can_be_taken(reports: Path, tmp_path: Path) -> None:
    picture = tmp_path / "run.png"
    screenshot(reports / "two.html", picture, 1280, 900)
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (1280, 900)
    assert len(data) > 20_000
