"""What one sees of a flow: rows in the terminal, the object of --json, and both again from a trace."""

import io
import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from rich.console import Console

from devhost.cli.trace import replay_trace
from devhost.flow.traces import FlowTrace
from devhost.node.outputs.outputs import Finding, LogEntry, NodeOutputs, no_usage
from devhost.node.outputs.run import Run, RunError
from devhost.protocol.wire import JsonObject
from devhost.terminal.screen import ViewOptions
from devhost.terminal.tables import flow_facts
from devhost.terminal.turn_view import TurnView
from devhost.text import Secrets
from devhost.trace import flow
from devhost.trace.lines import read_trace
from devhost.trace.played import flow_report, watched
from support.tracing import tracing

GRAPH = flow.FlowGraph(
    (
        flow.GraphNode("start", "start", "Start"),
        flow.GraphNode("agent", "agent", "Clerk"),
        flow.GraphNode("sorry", "answer", "Say sorry"),
    ),
    (flow.GraphEdge("start", "agent"), flow.GraphEdge("agent", "sorry", "fail-branch")),
)
FACTS = flow.FlowLine(
    file="flow.yml",
    name="Office",
    kind="chatflow",
    nodes=3,
    turn=1,
    query="What is there?",
    inputs={"room": "4"},
    files=("plan.pdf",),
    graph=GRAPH,
)
START = flow.FlowNode("start", "start", "Start", {})
AGENT = flow.FlowNode("agent", "agent", "Clerk", {})
FORM = flow.FlowNode("form", "human-input", "Ask a person", {})
ASKED = flow.FormAsked("f1", FORM, "Send?", (), (flow.Button("ok", "Approve"),))
LOOP = flow.FlowNode("loop", "loop", "Again", {})
STEP = flow.FlowNode("step", "code", "Step", {}, container="loop")
END = flow.FlowEnded("succeeded", {"answer": "Two.", "files": []}, "", {"count": 2})
LONG = "word " * 100


def strategy_run(**changes: object) -> Run:
    entry = LogEntry("r1", None, "ROUND 1", "success", None, {"text": "Two."}, {"elapsed_time": 0.5})
    outputs = NodeOutputs("Two.", [], [], no_usage(), {}, [entry], 0)
    run = Run("clerk", outputs, None, [], [], 0.5, session_id="s1")
    return replace(run, **changes)  # type: ignore[arg-type]


def ran(execution: str, node: flow.FlowNode, number: int | None = None, **changes: object) -> list[flow.FlowEvent]:
    """A node that starts and ends at once."""
    ended = flow.NodeEnded(execution, node, "succeeded", {"asked": "?"}, {"text": "Two."}, 0.25)
    return [flow.NodeStarted(execution, node, number), replace(ended, **changes)]  # type: ignore[arg-type]


@dataclass(frozen=True)
class ShownConversation:
    shown: str
    reports: list[JsonObject]


def told(
    *turns: Sequence[flow.FlowEvent], options: ViewOptions | None = None, trace: Path | None = None, secret: str = ""
) -> ShownConversation:
    """What a conversation shows, and its reports; `trace` gets it too."""
    console = Console(file=io.StringIO(), width=100)
    view = TurnView(console, options)
    with nullcontext() if trace is None else tracing(trace, *filter(None, [secret]), command="flow") as writer:
        written = FlowTrace(writer)
        files: list[JsonObject] = [{"filename": name} for name in FACTS.files]
        view.open(flow_facts(FACTS, ["a notice"], "scripted"), FACTS.query, files)
        reports = []
        for number, events in enumerate(turns, start=1):
            view.begin_answer() if number == 1 else view.go_on(FACTS.query, files)
            played = watched(written.of_turn(replace(FACTS, turn=number), events), view.show, Secrets())
            view.close(played)
            reports.append(flow_report(played))
    return ShownConversation(_text(console), reports)


def _text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_answer_streams_and_the_nodes_follow_in_the_order_in_which_they_ran() -> None:
    agent = ran("2", AGENT, run=strategy_run(), metadata={"total_tokens": 1200})
    shown = told([*ran("1", START), *agent, flow.AnswerText(AGENT, "Tw"), flow.AnswerText(AGENT, "o."), END]).shown

    lines = [line.rstrip() for line in shown.splitlines()]
    rows = ("Two.", "✓ Start  start  0.250 s", "✓ Clerk  agent  0.250 s  1,200 tokens", "count  2")
    places = [lines.index(line) for line in rows]
    assert places == sorted(places)
    agents = lines[places[2] + 1 : places[2] + 4]
    assert agents == ["  in  asked: ?", "  out text: Two.", "└── ✓ ROUND 1  0.500 s"]
    for fact in (
        "Office (chatflow, 3 nodes)",
        "What is there?",
        '{"room": "4"}',
        "plan.pdf",
        "a notice",
        "finished in",
    ):
        assert fact in shown


@pytest.mark.parametrize(
    ("reason", "status", "end"),
    [
        ("answered", "succeeded", "finished in"),
        ("approval_required", "succeeded", "waits for the user's approval (approval_required) after"),
        ("approval_required", "failed", "failed after"),
        ("answered", "paused", "waits for an answer after"),
    ],
)
def test_a_turn_that_waits_has_not_finished(reason: str, status: flow.FlowStatus, end: str) -> None:
    run = strategy_run()
    run = replace(run, outputs=replace(run.outputs, variables={"stop_reason": reason}))
    shown = told([*ran("2", AGENT, run=run), flow.FlowEnded(status, {"answer": "May I?"})]).shown
    assert re.fullmatch(rf"{re.escape(end)} \d+\.\d\d s", shown.splitlines()[-1].rstrip())


def test_what_an_agent_asked_for_does_not_wait_any_more_once_a_form_has_asked() -> None:
    run = strategy_run()
    run = replace(run, outputs=replace(run.outputs, variables={"stop_reason": "approval_required"}))
    assert "finished in" in told([*ran("2", AGENT, run=run), ASKED, *ran("3", FORM), END]).shown


def test_a_retry_an_error_branch_and_a_default_value_are_visible_as_such() -> None:
    branch = flow.FlowNode("ask", "llm", "Ask", {"error_strategy": "fail-branch"})
    default = flow.FlowNode("look", "tool", "Look", {"error_strategy": "default-value"})
    first, last = ran("1", branch, status="exception", error="no such key", retries=("too busy",))
    end = flow.FlowEnded("partial-succeeded", {"answer": ""})
    both = told([first, last, *ran("2", default, status="exception", error="gone"), end])

    asked = "! Ask  llm  0.250 s\n  attempt 1 failed: too busy\n  no such key\n  the flow goes on: error branch\n"
    lines = "\n".join(line.rstrip() for line in both.shown.splitlines())
    assert asked in lines
    assert "! Look  tool  0.250 s\n  gone\n  the flow goes on: default value\n" in lines
    ask, look = both.reports[0]["nodes"]
    assert (ask["went_on"], look["went_on"]) == ("error branch", "default value")
    assert (ask["retries"], look["retries"]) == (["too busy"], [])


def test_rounds_are_folded_unless_something_went_wrong_in_them() -> None:
    begin, end = ran("0", LOOP)
    bad = ran("2", STEP, 2, status="failed", error="divided by zero")
    events = [begin, *ran("1", STEP, 1, round=1), *bad, end, flow.FlowEnded("failed", {}, "divided by zero")]
    both = told(events)

    lines = [line.rstrip() for line in both.shown.splitlines()]
    place = lines.index("├── round 1  ✓")
    assert lines[place + 1 : place + 4] == [
        "└── round 2",
        "    └── ✗ Step  code  0.250 s",
        "          divided by zero",
    ]
    steps = [(node["id"], node["container"], node["round"]) for node in both.reports[0]["nodes"]]
    assert ("step", "loop", 1) in steps
    unfolded = told(events, options=ViewOptions(verbose=True)).shown
    assert [line.rstrip() for line in unfolded.splitlines() if "round 1" in line or "│   └──" in line] == [
        "├── round 1",
        "│   └── ✓ Step  code  0.250 s",
    ]


def test_a_form_waits_or_says_who_answered_it() -> None:
    begin, end = ran("1", FORM)
    paused = told([begin, ASKED, flow.FlowEnded("paused", {}, "no answer")])
    by: Sequence[flow.FormAnswered] = [
        flow.FormAnswered("f1", "ok", {}, each) for each in ("script", "terminal", "timeout")
    ]
    shown = told(*([begin, ASKED, each, end, END] for each in by)).shown

    assert "… Ask a person  human-input  waits for an answer" in paused.shown
    assert paused.reports[0]["status"] == "paused"
    assert re.findall(r"(?:not )?answered .*(?:time|: Approve)", re.sub(r"\d+\.\d s", "0.5 s", shown)) == [
        "answered by the script: Approve",
        "answered by a person in the terminal after 0.5 s: Approve",
        "not answered in time",
    ]


def test_broken_rules_and_a_traceback_are_shown() -> None:
    error = RunError("ValueError", "no", "Traceback: line 1")
    run = strategy_run(findings=[Finding("text-empty", "An empty text was sent.")], error=error)
    events = [*ran("1", AGENT, run=run), END]
    shown = told(events).shown

    assert "text-empty: An empty text was sent." in shown
    assert "--traceback prints the traceback." in shown
    assert "Traceback: line 1" in told(events, options=ViewOptions(traceback=True)).shown


def replayed(file: Path) -> str:
    console = Console(file=io.StringIO(), width=100)
    replay_trace(read_trace(file), console, ViewOptions())
    return _text(console)


def without_seconds(shown: str) -> str:
    """The whole turn's seconds are measured: by the view, and by the trace."""
    return "\n".join(line for line in shown.splitlines() if " in 0." not in line and "notice" not in line)


def test_a_trace_shows_each_turn_again(tmp_path: Path) -> None:
    branch = flow.FlowNode("ask", "llm", "Ask", {"error_strategy": "fail-branch"})
    start, end = ran("1", branch, status="exception", error="no", retries=("busy",))
    loop = ran("3", LOOP)
    first = [start, end, flow.AnswerText(AGENT, "Hello"), END]
    second = [loop[0], *ran("4", STEP, 1), loop[1], ASKED, END]
    shown = told(first, second, trace=tmp_path / "trace.jsonl").shown

    assert without_seconds(replayed(tmp_path / "trace.jsonl")) == without_seconds(shown)


def test_a_trace_hides_secrets(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    told([*ran("1", START, outputs={"key": "sk-hidden-1"}), END], trace=file, secret="sk-hidden-1")

    assert "sk-hidden-1" not in file.read_text("utf-8")
    assert '"key"' in file.read_text("utf-8")


def test_a_trace_whose_flow_never_began_has_no_turn(tmp_path: Path) -> None:
    """An edited one may have events of a flow all the same."""
    file = tmp_path / "trace.jsonl"
    told(ran("1", START), trace=file)
    header, *lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(header + b"".join(line for line in lines if b'"event": "flow"' not in line))

    assert b"node_start" in file.read_bytes()
    assert "Clerk" not in replayed(file)


def test_a_trace_of_a_killed_flow_shows_the_nodes_until_then(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    with tracing(file, command="flow") as writer:
        list(FlowTrace(writer).of_turn(FACTS, [flow.NodeStarted("1", AGENT)]))

    shown = replayed(file)
    assert "… Clerk  agent  not finished" in shown
    assert "not ended after 0.00 s\nthe trace ends before the flow does" in shown
