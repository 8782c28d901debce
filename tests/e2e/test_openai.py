"""The whole path: the plugin's process, devhost, OpenAI's SDK, and the fake API on the other side, over both APIs."""

import base64
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from devhost import FunctionTool, Host, HostLimits, Run
from devhost.models.openai_api.backend import Connection, OpenAIModel
from devhost.models.openai_api.provider import Api
from fake_openai import (
    KEY,
    Call,
    FakeOpenAI,
    Tokens,
    Turn,
    context_too_long,
    rate_limited,
)
from tests.e2e.test_plugin_process import meeting_tool

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
STRATEGY = "gpt5_function_calling"
APIS: list[Api] = ["responses", "chat"]


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host.start(ROOT, limits=HostLimits(run_seconds=900)) as host:
        yield host


def model(fake: FakeOpenAI, api: Api, key: str = KEY, **params: object) -> OpenAIModel:
    return OpenAIModel(Connection(key, fake.base_url), api, "gpt-5", completion_params=params)


def answered(run: Run, text: str) -> bool:
    assert run.error is None, run.error
    assert run.findings == []
    assert run.outputs.text == text
    assert run.outputs.variables["stop_reason"] == "answered"
    return True


def search_tool(result: str = "found") -> FunctionTool:
    return FunctionTool("search", {"q": "string"}, lambda _: result)


def notes(run: Run) -> str:
    return json.dumps([entry.tree() for entry in run.outputs.logs], ensure_ascii=False)


@pytest.mark.parametrize("api", APIS)
def test_two_tools_side_by_side_over_a_round_trip(host: Host, fake: FakeOpenAI, api: Api) -> None:
    wants = Turn(
        text="I look both up.",
        calls=(Call("search", {"q": "größe"}, id="call_a"), Call("search", {"q": "b"}, id="call_b")),
        tokens=Tokens(prompt=1_000, completion=100, reasoning=64),
    )
    fake.will(wants, Turn(text="Both found.", tokens=Tokens(prompt=2_000, cached=1_000, completion=50)))
    backend = model(fake, api)
    run = host.run(STRATEGY, {"query": "?"}, model=backend, tools=[meeting_tool()])

    assert answered(run, "Both found.")
    assert [item["status"] for item in run.outputs.variables["tool_runs"]] == ["ok", "ok"]
    assert fake.remaining == 0
    # 1,000 fresh, then 1,000 fresh and 1,000 cached; 150 completion tokens: 1.25, 0.125 and 10 dollars per million.
    assert run.outputs.usage["prompt_tokens"] == 3_000
    assert run.outputs.usage["completion_tokens"] == 150
    assert Decimal(run.outputs.usage["total_price"]) == Decimal("0.004125")
    assert backend.tokens.cached_tokens == 1_000
    assert backend.tokens.reasoning_tokens == 64
    results = [
        item.get("output", item.get("content"))
        for item in fake.requests[1][1]["input" if api == "responses" else "messages"]
        if item.get("role") == "tool" or item.get("type") == "function_call_output"
    ]
    assert results == ["found größe", "found b"]


@pytest.mark.parametrize("api", APIS)
def test_a_tool_of_the_models_own_invention_ends_nothing(host: Host, fake: FakeOpenAI, api: Api) -> None:
    """The real API refuses such a name when it comes back to it."""
    fake.will(Turn(calls=(Call("multi_tool_use.parallel", {"q": "a"}),)), Turn(text="Then without."))
    run = host.run(STRATEGY, {"query": "?"}, model=model(fake, api), tools=[search_tool()], opaque_body="drop")

    assert answered(run, "Then without.")
    assert [item["status"] for item in run.outputs.variables["tool_runs"]] == ["refused"]


def test_the_items_of_a_response_are_replayed_verbatim(host: Host, fake: FakeOpenAI) -> None:
    fake.will(
        Turn(text="First.", summary="Why not.\n\nReally.", calls=(Call("search", {"q": "1"}),)),
        Turn(summary="Once more.", calls=(Call("search", {"q": "2"}), Call("search", {"q": "3"}))),
        Turn(text="Done."),
    )
    run = host.run(
        STRATEGY,
        {"query": "?"},
        model=model(fake, "responses", reasoning_summary="auto"),
        tools=[search_tool()],
        opaque_body="keep",
    )

    assert answered(run, "Done.")
    first, second, third = (body["input"] for _, body in fake.requests)
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert second[len(first) : -1] == fake.issued[0]
    assert third[len(second) : -2] == fake.issued[1]
    assert "Why not." in notes(run)


@pytest.mark.parametrize("api", APIS)
def test_a_rate_limit_is_waited_out_by_the_plugin(host: Host, fake: FakeOpenAI, api: Api) -> None:
    fake.will(rate_limited(), Turn(text="Now it works."))
    run = host.run(STRATEGY, {"query": "?"}, model=model(fake, api), tools=[])

    assert answered(run, "Now it works.")
    assert len(fake.requests) == 2
    assert "rate limited; tried again after 1 s" in notes(run)


@pytest.mark.parametrize("api", APIS)
def test_a_cut_stream_is_tried_again_while_nothing_is_shown(host: Host, fake: FakeOpenAI, api: Api) -> None:
    calls = (Call("search", {"q": "something rather long"}),)
    fake.will(Turn(calls=calls, cut_after=4), Turn(calls=calls), Turn(text="Done."))
    run = host.run(STRATEGY, {"query": "?"}, model=model(fake, api), tools=[search_tool()])

    assert answered(run, "Done.")
    assert len(run.outputs.variables["tool_runs"]) == 1
    assert "tried again after 1 s" in notes(run)


@pytest.mark.parametrize("api", APIS)
def test_a_prompt_that_is_too_long_is_trimmed_and_sent_again(host: Host, fake: FakeOpenAI, api: Api) -> None:
    asks = Turn(calls=(Call("search", {"q": "x"}),))
    fake.will(asks, context_too_long(), Turn(text="Done."))
    run = host.run(STRATEGY, {"query": "?"}, model=model(fake, api), tools=[search_tool("long " * 3_000)])

    assert answered(run, "Done.")
    first, too_long, trimmed = (len(json.dumps(body)) for _, body in fake.requests)
    assert first < trimmed < too_long - 10_000


@pytest.mark.parametrize("api", APIS)
def test_a_key_that_is_refused_is_one_clear_error_without_it(host: Host, fake: FakeOpenAI, api: Api) -> None:
    wrong = "sk-proj-notTheRightKey0123456789"
    run = host.run(STRATEGY, {"query": "?"}, model=model(fake, api, wrong), tools=[])

    assert run.error is not None
    assert run.error.kind == "InvokeAuthorizationError"
    assert "refused its credentials" in run.error.message
    assert wrong not in json.dumps([run.messages, run.error.message, run.error.traceback])
    assert len(fake.requests) == 1


@pytest.mark.parametrize("api", APIS)
def test_a_cut_answer_is_not_a_silent_success(host: Host, fake: FakeOpenAI, api: Api) -> None:
    fake.will(Turn(text="Half an ans", incomplete="max_output_tokens"))
    run = host.run(STRATEGY, {"query": "?"}, model=model(fake, api, max_tokens=16), tools=[])
    assert run.outputs.variables["stop_reason"] == "length"
    limit = "max_output_tokens" if api == "responses" else "max_completion_tokens"
    assert fake.requests[0][1][limit] == 16


@pytest.mark.parametrize("api", APIS)
def test_history_and_images_arrive(host: Host, fake: FakeOpenAI, api: Api) -> None:
    fake.will(Turn(text="A map."))
    image = {
        "type": "image",
        "format": "png",
        "mime_type": "image/png",
        "base64_data": base64.b64encode(b"picture").decode(),
    }
    history: list[dict[str, object]] = [
        {"role": "user", "content": [{"type": "text", "data": "This:"}, image]},
        {"role": "assistant", "content": "<think>\nHm.\n</think>\nI see."},
    ]
    run = host.run(STRATEGY, {"query": "What is it?"}, model=model(fake, api), tools=[], history=history)

    assert answered(run, "A map.")
    sent = json.dumps(fake.requests[0][1])
    assert "data:image/png;base64,cGljdHVyZQ==" in sent
    assert "I see." in sent
    assert "<think>" not in sent
