"""Whole runs of the plugin's own process over the SDK's stdio protocol."""

import base64
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from devhost import FunctionTool, Host, Run, ScriptedModel
from devhost.node.outputs.log import LogEntry
from devhost.protocol.wire import JsonObject

pytestmark = pytest.mark.e2e

PATIENCE = 300
"""Seconds; bounds a wait for something that a correct plugin does at once."""
STRATEGIES = ["gpt5_function_calling", "gpt5_react"]


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


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_tools_of_one_turn_run_at_the_same_time(host: Host, strategy: str) -> None:
    meet = threading.Barrier(2, timeout=PATIENCE)

    def look_up(arguments: JsonObject) -> str:
        meet.wait()
        return f"found {arguments['q']}"

    model = ScriptedModel.of([wants(("search", {"q": "a"}), ("search", {"q": "b"})), says("Both found.")])
    run = host.run(strategy, {"query": "?"}, model=model, tools=[FunctionTool("search", {"q": "string"}, look_up)])

    assert ended_well(run)
    assert run.outputs.text == "Both found."
    results = [message.text for message in model.requests[1].prompt_messages if message.role == "tool"]
    assert results == ["found a", "found b"]
    assert labels(run.outputs.logs) == [
        ["ROUND 1", "scripted-gpt-5", "CALL search", "CALL search"],
        ["ROUND 2", "scripted-gpt-5"],
        "RUN FINISHED: answered",
    ]


def test_a_failing_tool_does_not_affect_its_sibling_or_the_run(host: Host) -> None:
    def fail(_arguments: JsonObject) -> str:
        raise PermissionError("401 unauthorized for key sk-live-1234567890")

    tools = [
        FunctionTool("broken", {"q": "string"}, fail),
        FunctionTool("whole", {"q": "string"}, lambda arguments: f"ok {arguments['q']}"),
    ]
    model = ScriptedModel.of([wants(("broken", {"q": "1"}), ("whole", {"q": "2"})), says("Half of it.")])
    run = host.run("gpt5_function_calling", {"query": "?"}, model=model, tools=tools)

    assert ended_well(run)
    results = [message.text for message in model.requests[1].prompt_messages if message.role == "tool"]
    assert results == ["tool invoke error: failed to execute tool: 401 unauthorized for key [redacted]", "ok 2"]
    assert [item["status"] for item in run.outputs.variables["tool_runs"]] == ["error", "ok"]
    assert "sk-live" not in json.dumps(run.messages)


def test_the_iteration_limit_ends_in_an_answer(host: Host) -> None:
    model = ScriptedModel.of([wants(("step", {"n": 1})), wants(("step", {"n": 2})), says("What I have so far.")])
    tool = FunctionTool("step", {"n": "number"}, lambda arguments: f"step {arguments['n']}")
    run = host.run("gpt5_function_calling", {"query": "?", "maximum_iterations": "2"}, model=model, tools=[tool])

    assert ended_well(run)
    assert run.outputs.text == "What I have so far."
    assert run.outputs.variables["stop_reason"] == "iteration_limit"
    assert model.remaining == 0
    assert model.requests[2].tools == model.requests[0].tools


def test_a_file_of_a_tool_reaches_the_node_whole(host: Host) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 1200

    def draw(_arguments: JsonObject) -> list[JsonObject]:
        meta = {"mime_type": "image/png", "filename": "map.png"}
        return [{"type": "blob", "message": {"blob": base64.b64encode(picture).decode()}, "meta": meta}]

    model = ScriptedModel.of([wants(("draw", {})), says("Here is the map.")])
    run = host.run("gpt5_function_calling", {"query": "?"}, model=model, tools=[FunctionTool("draw", {}, draw)])

    assert ended_well(run)
    (file,) = run.outputs.files
    assert (file["filename"], file["mime_type"]) == ("map.png", "image/png")
    (stored,) = [path for path in Path(host.files.directory).iterdir() if path.read_bytes() == picture]
    assert stored.suffix == ".png"


def test_a_path_outside_of_files_is_never_read(host: Host, tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(b"\x89PNG\r\n\x1a\nnobody should see this")

    def leak(arguments: JsonObject) -> list[JsonObject]:
        return [{"type": "image_link", "message": {"text": arguments["path"]}, "meta": {}}]

    model = ScriptedModel.of([wants(("leak", {"path": f"/files/../..{secret}"})), says("No.")])
    tool = FunctionTool("leak", {"path": "string"}, leak)
    run = host.run("gpt5_function_calling", {"query": "?"}, model=model, tools=[tool])

    assert ended_well(run)
    assert run.outputs.files == []
    assert "nobody should see this" not in json.dumps(run.messages)


def test_fifty_runs_at_once_do_not_mix(host: Host) -> None:
    """Every run is in its tool at the same time as all the others, and each gets its own things back."""
    meet = threading.Barrier(50, timeout=PATIENCE)

    def echo(arguments: JsonObject) -> str:
        meet.wait()
        return f"result of {arguments['q']}"

    def one_run(number: int) -> tuple[Run, ScriptedModel]:
        turns = [wants(("echo", {"q": f"question {number}"})), says("{{query}}: {{tool_results}}")]
        model = ScriptedModel.of(turns, query=f"query {number}")
        tool = FunctionTool("echo", {"q": "string"}, echo)
        return host.run("gpt5_function_calling", {"query": f"query {number}"}, model=model, tools=[tool]), model

    with ThreadPoolExecutor(50) as runs:
        finished = list(runs.map(one_run, range(50)))

    for number, (run, model) in enumerate(finished):
        assert ended_well(run)
        assert run.outputs.text == f"query {number}: result of question {number}"
        assert [request.prompt_messages[1].text for request in model.requests] == [f"query {number}"] * 2
        assert run.outputs.usage["total_tokens"] > 0


def test_a_lasting_model_error_is_one_clear_error_with_closed_logs(host: Host) -> None:
    error = {"type": "InvokeAuthorizationError", "message": "Incorrect API key provided: sk-proj-abcdefgh12345678"}
    run = host.run("gpt5_function_calling", {"query": "?"}, model=ScriptedModel.of([{"error": error}]), tools=[])

    assert run.error is not None
    assert run.error.kind == "InvokeAuthorizationError"
    assert "unauthorized: Incorrect API key provided: [redacted]" in run.error.message
    assert "sk-proj" not in json.dumps([run.messages, run.error.message, run.error.traceback])
    assert [finding for finding in run.findings if finding.rule == "log-left-open"] == []
