"""The timeline of a run: each call stands where the strategy's log says, or where the run was when it began."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from devhost import FunctionTool, Host, ScriptedModel
from devhost.protocol.wire import JsonObject
from devhost.trace.lines import read_trace
from devhost.trace.runs import Call, TracedRun, traced_runs
from devhost.trace.timeline import Span, timeline
from support.plugins import PUPPET, TOOLBOX
from support.tracing import tracing
from tests.devhost import ROOT

pytestmark = pytest.mark.usefixtures("lent_plugins")

REPEAT = {"provider": "devhost-tests/toolbox/toolbox", "tool_name": "repeat", "parameters": {"word": "a"}}


def spans_of(file: Path, strategy: str, query: str, turns: Sequence[JsonObject], *tools: FunctionTool) -> list[Span]:
    plugin, plugins = (PUPPET, [TOOLBOX]) if strategy == "puppet" else (ROOT, [])
    with tracing(file) as writer, Host.start(plugin, tools=plugins, watcher=writer) as host:
        run = host.run(strategy, {"query": query}, model=ScriptedModel.of(list(turns)), tools=list(tools) or None)
    assert run.error is None
    (traced,) = traced_runs(read_trace(file))
    return timeline(traced)


def wants(name: str, call_id: str, arguments: JsonObject) -> JsonObject:
    return {"name": name, "id": call_id, "arguments": arguments}


def test_a_call_stands_at_the_entry_that_has_its_id(tmp_path: Path) -> None:
    def look(arguments: JsonObject) -> str:
        if arguments["number"] == 3:
            raise ValueError("no 3 here")
        return f"found {arguments['number']}"

    calls = [wants("look", f"call_{word}", {"number": word}) for word in ("one", "2", "3")]
    turns: list[JsonObject] = [{"thought": "hm", "text": "Looking.", "tool_calls": calls}, {"text": "Done."}]
    tool = FunctionTool("look", {"number": "number"}, look)
    first, second, end = spans_of(tmp_path / "run.jsonl", "gpt5_function_calling", "Look.", turns, tool)

    assert [span.kind for span in (first, second, end)] == ["group", "group", "moment"]
    model, refused, good, broken = first.children
    assert [span.kind for span in first.children] == ["model", "step", "tool", "tool"]
    assert [span.status for span in first.children] == ["success", "error", "success", "error"]
    assert [span.data["tool_call_id"] for span in (refused, good, broken)] == ["call_one", "call_2", "call_3"]
    for span, arguments in ((good, {"number": 2}), (broken, {"number": 3})):
        assert [call.request["tool_parameters"] for call in span.calls] == [arguments]
        assert first.began <= span.began <= span.ended <= first.ended
    assert [call.kind for call in model.calls] == ["llm"]
    assert first.ended <= second.began


def test_each_try_of_a_model_call_stands_at_its_entry(tmp_path: Path) -> None:
    error = {"type": "InvokeRateLimitError", "message": "slow down"}
    turns: list[JsonObject] = [{"text": "never", "error": error}, {"text": "Done."}]
    first, *_ = spans_of(tmp_path / "run.jsonl", "gpt5_function_calling", "Look.", turns)
    tries = [call for span in first.children for call in span.calls]
    assert len(first.children[0].calls) == len(tries) == 2
    assert ["slow down" in call.error for call in tries] == [True, False]


PARENTS = (("a", ""), ("b", "a"), ("c", "b"))


def test_what_tools_ask_for_stands_under_the_strategys_call() -> None:
    calls = [Call("p", "tool", {"tool": id_}, 1.0, 2.0, id=id_, parent=parent) for id_, parent in PARENTS]
    (span,) = timeline(TracedRun("?", {}, 0.0, 3.0, calls=calls))
    assert (span.id, [inner.id for inner in span.children]) == ("a", ["b", "c"])


# --- strategies whose log has no ids ----------------------------------------------------------------------------------


def log(name: str, status: str, parent: str | None = None) -> JsonObject:
    return {
        "emit": {
            "type": "log",
            "message": {"id": name, "parent_id": parent, "label": name, "status": status, "data": {}},
        }
    }


def test_calls_without_an_entry_are_shown_too(tmp_path: Path) -> None:
    spans = spans_of(tmp_path / "run.jsonl", "puppet", json.dumps([{"call": REPEAT}, {"ask": "x"}]), [{"text": "Hi"}])
    assert [(span.label, span.kind, span.status) for span in spans] == [
        ("repeat", "tool", "success"),
        ("scripted-gpt-5", "model", "success"),
    ]


def test_a_foreign_call_stands_in_the_innermost_open_group(tmp_path: Path) -> None:
    """Beside the entry that bears its name: that they are the same is not known."""
    steps = [
        log("outer", "start"),
        log("inner", "start", "outer"),
        log("CALL repeat", "start", "inner"),
        {"call": REPEAT},
        log("CALL repeat", "success", "inner"),
        log("inner", "success", "outer"),
        {"ask": "x"},
        log("outer", "success"),
    ]
    (outer,) = spans_of(tmp_path / "run.jsonl", "puppet", json.dumps(steps), [{"text": "Hi"}])
    inner, model = outer.children
    assert (inner.label, model.label, model.kind) == ("inner", "scripted-gpt-5", "model")
    assert [(span.label, span.kind) for span in inner.children] == [("CALL repeat", "step"), ("repeat", "tool")]
