"""Where the page of a trace shows what plugins printed, and a tool's traceback."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from devhost import Host, ScriptedModel
from devhost.page.contents import add_moments, lines_of_calls
from devhost.trace.lines import PrintedLine, read_trace
from devhost.trace.runs import Call, TracedRun, traced_runs
from devhost.trace.timeline import Span
from support.page_reading import page_of
from support.plugins import ODDMENTS, PUPPET
from support.tracing import tracing

PROVIDER = "devhost-tests/oddments/oddments"


def line(at: float, text: str, plugin: str = "oddments", *, exact: bool = True) -> PrintedLine:
    return PrintedLine(at=at, plugin=plugin, text=text, exact=exact)


def call(name: str, began: float, ended: float | None) -> Call:
    return Call("puppet", "tool", {"provider": PROVIDER, "tool": name}, began, ended, id=name)


RUN = TracedRun("?", {}, 10.0, 20.0, (), (call("a", 11, 13), call("b", 12, 14), call("c", 15, None)), None)


def test_a_line_is_under_a_call_only_if_that_is_certain() -> None:
    run = replace(
        RUN,
        printed=(
            line(11.5, "alone"),
            line(12.5, "two calls"),
            line(16, "late", exact=False),
            line(16, "open"),
            line(16, "other", "puppet"),
            line(14.5, "between"),
        ),
    )
    found = {name: [each.text for each in lines] for name, lines in lines_of_calls(run).items()}
    assert found == {"a": ["alone"], "c": ["open"]}


def test_other_lines_are_moments_of_the_timeline_or_around_it() -> None:
    group = Span("1", "ROUND 1", "success", 11, 14, children=[Span("1x", "x", "success", 11, 12)])
    spans = [group, Span("2", "ROUND 2", "success", 15, 20)]
    printed = (line(9, "start"), line(12.5, "1"), line(12.55, "2"), line(14.5, "3"), line(21, "end"))
    rest = add_moments(spans, replace(RUN, printed=tuple(replace_exact(each) for each in printed)))
    assert [each.text for each in rest] == ["start", "end"]
    assert [span.label for span in spans] == ["ROUND 1", "oddments printed", "ROUND 2"]
    assert (spans[1].printed, spans[1].kind) == (("3",), "moment")
    assert [span.printed for span in group.children] == [(), ("1", "2")]


def replace_exact(printed: PrintedLine) -> PrintedLine:
    return printed.model_copy(update={"exact": False})


@pytest.mark.usefixtures("lent_plugins")
def test_the_page_shows_lines_and_a_tools_traceback_under_its_call(tmp_path: Path) -> None:
    trace = tmp_path / "run.jsonl"
    steps = json.dumps([["shout", ["<b>weighing</b>"]], ["fail", "out of cheese"]])
    wants = {"call": {"provider": PROVIDER, "tool_name": "perform", "parameters": {"steps": steps}}}
    query = json.dumps([{"out": "before the call\n"}, wants])
    with tracing(trace) as writer, Host.start(PUPPET, tools=[ODDMENTS], watcher=writer) as host:
        host.run("puppet", {"query": query}, model=ScriptedModel.of([{}]))
    (run,) = traced_runs(read_trace(trace))
    assert {each.id for each in run.calls} == set(lines_of_calls(run))
    words = " ".join(page_of(trace).text.split())
    assert "puppet printed" in words
    assert "Printedbefore the call" in words
    assert len(re.findall(r"ValueError: out of cheese, tools/\w+\.py:\d+", words)) == 1
    assert "TracebackTraceback (most recent call last):" in words
    assert "Printed<b>weighing</b>" in words
