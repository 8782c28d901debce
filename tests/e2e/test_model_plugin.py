"""The agent with a model plugin between it and its provider, each in a process of its own, as in Dify."""

import json
from collections.abc import Iterator

import pytest

from devhost import FunctionTool, Host, HostLimits, ModelPlugin
from fake_openai import KEY, Call, FakeOpenAI, Refusal, Turn
from support.plugins import GATEWAY
from tests.e2e.test_openai import ROOT, STRATEGY

pytestmark = pytest.mark.e2e

QUESTION = {"query": "What is it?"}
ANSWER = "Both were found." * 40
"""Longer than what the agent holds back."""
SEARCH = FunctionTool("search", {"q": "string"}, lambda arguments: f"found {arguments['q']}")


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host.start(ROOT, limits=HostLimits(run_seconds=900)) as host:
        yield host


@pytest.fixture(scope="module")
def plugin(server: FakeOpenAI) -> Iterator[ModelPlugin]:
    credentials = {"api_key": KEY, "endpoint_url": server.base_url}
    with ModelPlugin(GATEWAY, credentials, validated=False) as plugin:
        yield plugin


def test_the_answer_streams_and_tool_calls_go_both_ways(host: Host, plugin: ModelPlugin, fake: FakeOpenAI) -> None:
    wants = (Call("search", {"q": "größe"}, id="call_a"), Call("search", {"q": "b"}, id="call_b"))
    fake.will(Turn(text="I look both up.", calls=wants), Turn(text=ANSWER))
    model = plugin.model("gpt-4.1", {"temperature": 0.5})
    pieces = list[str]()

    def keep(message: dict[str, object]) -> None:
        match message:
            case {"type": "text", "message": {"text": str(text)}}:
                pieces.append(text)

    run = host.run(STRATEGY, QUESTION, model=model, tools=[SEARCH], on_message=keep)

    assert (run.error, run.findings) == (None, [])
    assert run.outputs.text == ANSWER
    assert len(pieces) > 2
    assert [item["status"] for item in run.outputs.variables["tool_runs"]] == ["ok", "ok"]
    (_, first), (_, second) = fake.requests
    assert (first["temperature"], [tool["function"]["name"] for tool in first["tools"]]) == (0.5, ["search"])
    assert [item["content"] for item in second["messages"] if item["role"] == "tool"] == ["found größe", "found b"]
    assert (run.outputs.usage["total_tokens"], run.outputs.usage["total_price"]) == (240, "0.00072")
    assert run.outputs.usage["currency"] == "EUR"


def test_the_agent_understands_the_plugins_errors(host: Host, plugin: ModelPlugin, fake: FakeOpenAI) -> None:
    fake.will(Refusal("Unsupported value: 'x'."))
    run = host.run(STRATEGY, QUESTION, model=plugin.model("gpt-4.1"))

    assert run.error is not None
    assert (run.error.kind, fake.remaining) == ("InvokeBadRequestError", 0)
    assert "Unsupported value: 'x'." in run.error.message
    assert KEY not in json.dumps(run.messages)
