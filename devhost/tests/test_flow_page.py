"""The page of a flow: nodes as rows on a time axis, and what came of each turn."""

import html
import re
from dataclasses import replace
from pathlib import Path

from devhost.page.page import render_page
from devhost.trace.flow import FlowEnded, FlowEvent, NodeStarted, SourcesRead
from devhost.trace.lines import read_trace
from test_flow_view import AGENT, ASKED, END, FORM, LONG, LOOP, START, STEP, ran, told

HOSTILE = "</pre><script>alert(1)</script><style>*{display:none}</style>"


def page_of(folder: Path, *turns: list[FlowEvent]) -> str:
    file = folder / "trace.jsonl"
    told(*turns, trace=file)
    return render_page(read_trace(file))


def rows_of(page: str) -> list[tuple[str, str, str]]:
    """Classes, name and kind of each node's row."""
    found = re.findall(r'<details class="span ([^"]*)".*?<b>(.*?)</b><small>(.*?)</small>', page, re.DOTALL)
    return [(classes, html.unescape(name), kind) for classes, name, kind in found]


def test_each_node_is_a_row_with_its_values(tmp_path: Path) -> None:
    page = page_of(tmp_path, [*ran("1", START), *ran("2", AGENT), END])

    assert rows_of(page) == [("step", "Start", "start"), ("model", "Clerk", "agent")]
    assert page.count("&#34;asked&#34;: &#34;?&#34;") == 2
    assert '<dd class="good">finished</dd>' in page
    assert "What is there?" in page
    assert "Two." in page
    assert '<th scope="row">count</th>' in page


def test_retries_errors_and_the_way_on_are_in_the_row(tmp_path: Path) -> None:
    agent = replace(AGENT, data={"error_strategy": "fail-branch"})
    failed = ran("2", agent, status="exception", error="no such key", retries=("slow down",))
    end = FlowEnded("partial-succeeded", {"answer": "Sorry."})
    page = page_of(tmp_path, [*ran("1", START), *failed, end])

    assert ("model error", "Clerk", "agent") in rows_of(page)
    assert "Attempt 1 failed" in page
    assert "slow down" in page
    assert "no such key" in page
    assert "The flow went on: <b>error branch</b>" in page
    assert "finished with an error" in page


def test_rounds_stand_below_their_container(tmp_path: Path) -> None:
    loop = ran("1", LOOP)
    page = page_of(tmp_path, [loop[0], *ran("2", STEP, 1), *ran("3", STEP, 2), loop[1], END])

    assert [(name, kind) for _, name, kind in rows_of(page)] == [
        ("Again", "loop"),
        ("Step", "code, round 1"),
        ("Step", "code, round 2"),
    ]
    assert page.count("--depth:1") == 2


def test_turns_stand_below_each_other_and_one_that_was_killed_says_so(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    told([*ran("1", START), END], [*ran("2", START), END], trace=file)
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join(line for line in lines[:-1]), encoding="utf-8")

    page = render_page(read_trace(file))

    assert "A conversation of 2 turns" in page
    assert page.count('<dd class="good">finished</dd>') == 1
    assert page.count('<dd class="bad">not ended</dd>') == 1
    assert page.count("<dd>at least ") == 1
    assert "the trace ends before the flow does" in page


def test_sources_an_open_form_and_long_variables_are_shown(tmp_path: Path) -> None:
    segment = {"position": 1, "title": "Manual", "dataset_name": "Guides"}
    end = FlowEnded("succeeded", {"answer": "Two [1]."}, "", {"state": LONG * 10})
    events = [*ran("1", START), SourcesRead("1", START, (segment,)), NodeStarted("2", FORM), ASKED, end]
    page = page_of(tmp_path, events)

    assert 'Two <a class="cite" href="#turn-1-source-1">1</a>.' in page
    assert '<li id="turn-1-source-1"><span class="number">1</span>' in page
    assert "<b>Manual</b>" in page
    assert "<small>Guides</small>" in page
    assert ">waits<" in page
    assert f"<summary>{len(LONG * 10):,} characters</summary>" in page


def test_hostile_values_are_texts(tmp_path: Path) -> None:
    events = [*ran("1", START, outputs={"text": HOSTILE}, error=HOSTILE), FlowEnded("failed", {}, HOSTILE)]
    page = page_of(tmp_path, events)

    assert "<script" not in page
    assert HOSTILE not in page
    assert page.count("<style>") == 1
    assert "default-src 'none'" in page
