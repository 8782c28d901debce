"""Runs over the real SDK: what the strategy gets, asks, and leaves behind."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from devhost import FunctionTool, Host, ParameterError, ScriptedModel
from devhost.process.program import TransportName
from devhost.protocol.wire import JsonObject
from support.lending import Lender
from support.plugins import PUPPET, TOOLBOX, Perform

TRANSPORTS: list[TransportName] = ["stdio", "tcp", "http"]
PROVIDER = "devhost-tests/toolbox/toolbox"


@pytest.fixture(scope="module", params=TRANSPORTS)
def any_host(request: pytest.FixtureRequest, lender: Lender) -> Iterator[Host]:
    """The plugin run in each of Dify's three ways."""
    with lender.lends(), Host.start(PUPPET, tools=[TOOLBOX], transport=request.param) as host:
        yield host


def call(tool: str, *, provider: str = PROVIDER, **parameters: object) -> JsonObject:
    return {"call": {"provider": provider, "tool_name": tool, "parameters": parameters}}


def test_what_dify_refuses_is_raised_before_the_plugin_is_asked(host: Host) -> None:
    model = ScriptedModel.of([{}])
    with pytest.raises(ParameterError, match="query is empty: it needs a value"):
        host.run("puppet", {}, model=model)
    with pytest.raises(ParameterError, match="no strategy 'other'; there are: puppet"):
        host.run("other", {}, model=model)
    with pytest.raises(ParameterError, match=r"no parameter 'mod' \(did you mean 'mood'\?\)"):
        host.run("puppet", {"query": "[]", "mod": "calm"}, model=model)


def test_an_answer_streams_and_is_watched(any_host: Host) -> None:
    model = ScriptedModel.of([{"text": "Hello world", "chunk_size": 4, "usage": {"prompt_tokens": 5}}])
    watched: list[JsonObject] = []
    run = any_host.run("puppet", {"query": '[{"ask": "Hi"}]'}, model=model, on_message=watched.append)
    assert run.error is None
    assert run.outputs.text == "Hello world"
    assert [message["message"]["text"] for message in watched if message["type"] == "text"] == ["Hell", "o wo", "rld"]
    assert len(run.messages) == len(watched)
    assert run.outputs.variables["chunks"][-1]["delta"]["usage"]["prompt_tokens"] == 5
    assert (model.requests[0].prompt_messages[0].text, model.remaining) == ("Hi", 0)


def test_a_tools_file_comes_back_as_a_link_and_goes_on_as_a_file(perform: Perform) -> None:
    run = perform(call("draw", size=20_000))
    link, sources = run.outputs.variables["tool_messages"]
    (file,) = run.outputs.files
    assert link["type"] == "image_link"
    assert link["message"] == {"text": f"/files/tools/{file['id']}.png"}
    assert link["meta"] == {"tool_file_id": file["id"], "mime_type": "image/png", "filename": "picture.png"}
    assert Path(file["path"]).read_bytes() == b"P" * 20_000
    assert sources["message"]["retriever_resources"][0]["document_name"] == "Drawing for all"
    assert run.outputs.dropped_retriever_resources == 1


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (call("draw"), 'PluginInvokeError: {"args": {"traceback": "Traceback (most recent call last)'),
        (call("repeat", word="a", times="many"), "invalid literal for int() with base 10: 'many'"),
        (call("absent"), "tool absent of provider devhost-tests/toolbox/toolbox not found; there are: devhost-tests"),
    ],
)
def test_a_tool_that_fails(perform: Perform, step: JsonObject, words: str) -> None:
    assert words in perform(step).outputs.variables["tool_error"]


def test_function_tools(perform: Perform) -> None:
    def odd(arguments: dict[str, object]) -> JsonObject:
        if arguments["n"] == 2:
            raise ValueError("two is not odd")
        return {"odd": arguments["n"]}

    tools = [FunctionTool("odd", {"n": "number"}, odd)]
    provider = "devhost/functions/functions"
    run = perform(call("odd", provider=provider, n=1), tools=tools)
    said = {"type": "json", "message": {"json_object": {"odd": 1}}, "meta": None}
    assert (run.called, run.outputs.variables["tool_messages"]) == ([("odd", {"n": 1})], [said])
    assert "two is not odd" in perform(call("odd", provider=provider, n=2), tools=tools).outputs.variables["tool_error"]


def test_twenty_runs_at_once_do_not_mix(any_host: Host) -> None:
    def run(number: int) -> tuple[str, object]:
        name = f"run{number}"
        model = ScriptedModel.of([{"text": f"{name} " * 20, "chunk_size": 7}])
        steps = [call("repeat", word=name, times=3), {"ask": name}, call("draw", size=100 + number)]
        ended = any_host.run("puppet", {"query": json.dumps(steps)}, model=model)
        assert ended.error is None
        assert model.requests[0].prompt_messages[0].text == name
        return ended.outputs.text, [file["size"] for file in ended.outputs.files]

    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(run, range(20)))
    assert results == [(f"run{number} " * 20, [100 + number]) for number in range(20)]
