"""Every line of the daemon's recording, run through the code that carries devhost's own runs. Nothing is skipped."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from devhost import FunctionTool, ScriptedModel
from devhost.errors import RefusedCallError, RunFailure
from devhost.host.backwards import Reply
from devhost.models.backend import ModelRequest
from devhost.node.outputs.run import RunError
from devhost.protocol import structs
from devhost.protocol.failures import read_fault
from devhost.protocol.structs import agent_message
from devhost.protocol.wire import JsonObject, read_session_event
from support.daemon_golden import LINES, Caller, backwards_calls, lines, same

OF_A_PLUGIN = "Failed to transform agent message: req_id: 0123456789 PluginInvokeError: "
"""Before the text in which the daemon's error has what the plugin raised; recorded from Dify's node."""
KINDS = {"llm_request", "tool_request", "llm_chunk", "agent_message", "backwards_failure", "run_message"}
PERMITTED = {
    "provider": "p",
    "model": "m",
    "model_type": "llm",
    "mode": "chat",
    "completion_params": {},
    "prompt_messages": [{"role": "user", "content": "Hi"}],
}
SEARCH = {"tool_type": "builtin", "provider": "demo", "tool": "search", "tool_parameters": {"q": "x"}}


class Saying(ScriptedModel):
    """A model whose API sends these chunks."""

    chunks: tuple[Any, ...] = ()

    def invoke(self, request: ModelRequest, /) -> Iterator[JsonObject]:
        self.requests.append(request)
        yield from self.chunks


def saying(*chunks: object) -> Saying:
    model = Saying.of([{"text": "unused"}])
    model.chunks = chunks
    return model


def test_golden_every_kind_of_line_is_run() -> None:
    assert len(LINES) == 152
    assert {line["kind"] for line in LINES} == KINDS


@pytest.mark.parametrize("kind", ["llm_request", "tool_request"])
def test_golden_requests_reach_the_api_as_recorded(kind: str) -> None:
    record = {"llm_request": structs.LLM, "tool_request": structs.TOOL}[kind]
    for line in lines(kind):
        try:
            reached: JsonObject = {"out": structs.to_the_api(record, line["in"])}
        except RefusedCallError as error:
            reached = {"error": str(error)}
        assert same(reached, {key: line[key] for key in ("out", "error") if key in line}), line


def test_golden_a_refused_request_is_an_error_event_and_an_end() -> None:
    line = next(line for line in lines("llm_request") if "error" in line)
    events = list(Caller().ask(backwards_calls(), "llm", line["in"]))
    assert events == [event("error", line["error"]), event("end")]


def test_golden_chunks_arrive_as_recorded_or_are_dropped() -> None:
    for line in lines("llm_chunk"):
        calls = backwards_calls(saying(line["in"]))
        *events, end = Caller().ask(calls, "llm", PERMITTED)
        assert end == event("end")
        if "out" in line:
            assert same([said["data"] for said in events], [line["out"]]), line
        else:
            assert not events
            (finding,) = calls.findings
            assert finding.rule == "answer-dropped"
            assert finding.sentence.endswith(f": {line['error']}"), line


def test_golden_messages_of_a_run_arrive_as_recorded_or_end_it() -> None:
    for line in lines("agent_message"):
        heard = node_hears({"type": "stream", "data": line["in"]})
        if "out" in line:
            assert same(heard, [line["out"]]), line
        else:
            said = {"error_type": "unmarshal_error", "message": f"unmarshal json failed: {line['error']}"}
            assert heard == [f"{OF_A_PLUGIN}{json.dumps(said, ensure_ascii=False, separators=(',', ':'))}"]


def test_golden_what_the_node_reads_of_a_run() -> None:
    for line in lines("run_message"):
        read = [
            envelope["data"] if envelope["code"] == 0 else OF_A_PLUGIN + json.loads(envelope["message"])["message"]
            for envelope in line["node_reads"]
        ]
        assert same(node_hears(line["said"]), read), line


def node_hears(said: JsonObject) -> list[object]:
    """The messages, and what the node shows of a failure."""
    session = Caller().session
    session.deliver(read_session_event(said))
    session.deliver(read_session_event({"type": "end"}))
    try:
        return [*session.messages(lambda *_: None, 60, agent_message)]
    except RunFailure as failure:
        error = RunError.of(failure)
        return [error.node and error.node.shows]


def event(name: str, message: str = "", data: object = None) -> JsonObject:
    return {"event": name, "message": message, "data": data}


MESSAGE: JsonObject = {"role": "assistant", "content": "x", "tool_calls": []}
GOOD: JsonObject = {"model": "m", "delta": {"index": 0, "message": MESSAGE}}
SCRIPTED: dict[str, Any] = {
    "the API's stream holds data null and an empty error": "null",
    "the API answers HTTP 500 with a page": {"http": 500, "body": "<html>Internal</html>"},
    "the API answers HTTP 404 with JSON": {"http": 404, "body": '{"code":"not_found"}\n'},
    "the API answers HTTP 502 of a proxy, empty": "http_502",
    "the API closes before it answers": "closes",
    "the API resets the connection before it answers": "resets",
    "the API closes in the middle of a chunk": "closes_mid_chunk",
    "the API closes between two chunks, without the end of the HTTP body": "closes_between_chunks",
    "the API resets the connection after one chunk": "resets_mid_answer",
    "the API's stream has a wrong magic number": "garbage",
    "the API's stream ends with no chunk at all": "empty",
    "the API stalls after one chunk until the daemon's read timeout (6 s here, 240 s by default)": "stalls",
    "a tool: the API's stream holds an error": {
        "error": "tool invoke error: failed to execute tool search: boom",
    },
    "a tool: the API answers HTTP 500": "http_500",
    "a tool: the API closes before it answers": "closes",
}
"""What a script names for the fault."""
SAID: dict[str, tuple[Any, ...]] = {
    "the API answers and ends well": (GOOD, GOOD),
    "the API's stream holds text that is no JSON, then a good chunk": ("{", GOOD),
    "the API's stream holds a chunk without delta.index, then a good chunk": (
        {**GOOD, "delta": {"message": MESSAGE}},
        GOOD,
    ),
    "the API's stream holds a usage without latency, then a good chunk": (
        {**GOOD, "delta": {**GOOD["delta"], "usage": {"prompt_tokens": 1}}},
        GOOD,
    ),
}
"""What the API says, for a fault that a chunk itself is."""
TOOL_SAID: dict[str, list[Any]] = {
    "a tool: a message of a type that the daemon does not know": [
        {"type": "hologram", "message": {"text": "x"}, "meta": None},
        {"type": "text", "message": {"text": "x"}, "meta": None},
    ],
    "a tool: a chunk above 30 MiB": [
        {"type": "text", "message": {"text": "x" * (32505934 - 69)}, "meta": None},
    ],
}
RATE_LIMIT = "the API's stream holds an error of the model plugin (a rate limit)"


@pytest.mark.parametrize("line", lines("backwards_failure"), ids=lambda line: line["fault"][:60])
def test_golden_what_a_plugin_reads_when_the_api_fails(line: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reply, "wait_for_the_cut", Reply._cut)
    events = [
        {**each, "data": "…" if each["data"] is not None else None}
        for each in Caller().ask(failing(line), line["invocation"], request_of(line))
    ]
    assert events == line["plugin_reads"]


def request_of(line: dict[str, Any]) -> JsonObject:
    given: JsonObject | None = line.get("request")
    return given or (SEARCH if line["invocation"] == "tool" else PERMITTED)


def failing(line: dict[str, Any]) -> Any:  # noqa: ANN401 - the calls of a run
    fault = line["fault"]
    search = FunctionTool("search", {"q": "string"}, lambda _: TOOL_SAID.get(fault, "found"), provider="demo")
    if line["invocation"] == "tool":
        api_fails = {"search": read_fault(SCRIPTED[fault])} if fault in SCRIPTED else {}
        return backwards_calls(tools=(search,), api_fails=api_fails)
    if fault in SCRIPTED:
        model = ScriptedModel.of([{"text": "ab", "api_fails": SCRIPTED[fault]}])
        return backwards_calls(model)
    if fault == RATE_LIMIT:
        text = "[models] Rate Limit Error, Error code: 429 - {'error': {'message': 'Rate limit reached for gpt-5'}}"
        error = {"type": "InvokeRateLimitError", "message": text, "after_chunks": 1}
        return backwards_calls(ScriptedModel.of([{"text": "ab", "error": error}]))
    return backwards_calls(saying(*SAID.get(fault, ())))
