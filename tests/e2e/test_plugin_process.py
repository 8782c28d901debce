"""Whole runs in the plugin's own process, the same in each of the host's three ways to start it."""

import base64
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from devhost import FunctionTool, Host, Run, ScriptedModel
from devhost.node.outputs.outputs import LogEntry
from devhost.protocol.wire import JsonObject
from tests.support.clock import PATIENCE

pytestmark = pytest.mark.e2e

STRATEGY = "gpt5_function_calling"
RUNS = 20


def wants(*calls: tuple[str, JsonObject], **turn: object) -> JsonObject:
    entries = [
        {"name": name, "id": f"call_{number}", "arguments": arguments}
        for number, (name, arguments) in enumerate(calls, start=1)
    ]
    return {"tool_calls": entries, **turn}


def says(text: str, **turn: object) -> JsonObject:
    return {"text": text, **turn}


def labels(entries: list[LogEntry]) -> list[object]:
    """A log tree as nested lists of its labels."""
    return [[entry.label, *labels(entry.children)] if entry.children else entry.label for entry in entries]


def ended_well(run: Run) -> bool:
    assert run.error is None, run.error
    assert run.findings == []
    return True


def meeting_tool() -> FunctionTool:
    """Answers only when two calls of it are under way at once."""
    meet = threading.Barrier(2, timeout=PATIENCE)

    def look_up(arguments: JsonObject) -> str:
        meet.wait()
        return f"found {arguments['q']}"

    return FunctionTool("search", {"q": "string"}, look_up)


def test_two_tools_of_one_turn_run_at_the_same_time(host: Host) -> None:
    model = ScriptedModel.of([wants(("search", {"q": "a"}), ("search", {"q": "b"})), says("Both found.")])
    run = host.run(STRATEGY, {"query": "?"}, model=model, tools=[meeting_tool()])

    assert ended_well(run)
    assert run.outputs.text == "Both found."
    results = [message.text for message in model.requests[1].prompt_messages if message.role == "tool"]
    assert results == ["found a", "found b"]
    assert labels(run.outputs.logs) == [
        ["ROUND 1", "scripted-gpt-5", "CALL search", "CALL search"],
        ["ROUND 2", "scripted-gpt-5"],
        "ENDED: answered",
    ]
    assert run.outputs.variables["stop_reason"] == "answered"
    assert [item["status"] for item in run.outputs.variables["tool_runs"]] == ["ok", "ok"]
    assert run.outputs.usage["total_tokens"] > 0


def test_a_file_of_a_tool_reaches_the_node_whole(host: Host) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 1200

    def draw(_arguments: JsonObject) -> list[JsonObject]:
        meta = {"mime_type": "image/png", "filename": "map.png"}
        return [{"type": "blob", "message": {"blob": base64.b64encode(picture).decode()}, "meta": meta}]

    model = ScriptedModel.of([wants(("draw", {})), says("Here is the map.")])
    run = host.run(STRATEGY, {"query": "?"}, model=model, tools=[FunctionTool("draw", {}, draw)])

    assert ended_well(run)
    (file,) = run.outputs.files
    assert (file["filename"], file["mime_type"]) == ("map.png", "image/png")
    (stored,) = [path for path in Path(host.files.directory).iterdir() if path.read_bytes() == picture]
    assert stored.suffix == ".png"


def test_runs_at_once_do_not_mix(host: Host) -> None:
    """Every run is in its tool at the same time as all the others, and each gets its own things back."""
    meet = threading.Barrier(RUNS, timeout=PATIENCE)

    def echo(arguments: JsonObject) -> str:
        meet.wait()
        return f"result of {arguments['q']}"

    def one_run(number: int) -> tuple[Run, ScriptedModel]:
        turns = [wants(("echo", {"q": f"question {number}"})), says("{{query}}: {{tool_results}}")]
        model = ScriptedModel.of(turns, query=f"query {number}")
        tool = FunctionTool("echo", {"q": "string"}, echo)
        return host.run(STRATEGY, {"query": f"query {number}"}, model=model, tools=[tool]), model

    with ThreadPoolExecutor(RUNS) as runs:
        finished = list(runs.map(one_run, range(RUNS)))

    for number, (run, model) in enumerate(finished):
        assert ended_well(run)
        assert run.outputs.text == f"query {number}: result of question {number}"
        assert [request.prompt_messages[1].text for request in model.requests] == [f"query {number}"] * 2
        assert run.outputs.usage["total_tokens"] > 0
