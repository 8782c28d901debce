"""A plugin's backwards calls without a plugin: what the daemon answers, refuses and loses."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from devhost import HostLimits, ScriptedModel
from devhost.models.backend import ModelDescription, ModelRequest, chunk
from devhost.plugin.declaration import PluginDeclaration
from devhost.process.session import QueuePlaces, Session
from devhost.protocol.failures import read_fault
from devhost.protocol.wire import Invoked, JsonObject, Streamed
from support.daemon_golden import Caller, backwards_calls
from support.plugins import PUPPET
from support.waiting import PATIENCE

ASKING: JsonObject = {
    "provider": "p",
    "model": "m",
    "mode": "chat",
    "completion_params": {},
    "prompt_messages": [{"role": "user", "content": "Hi"}],
}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def ask(kind: str, request: JsonObject, text: str = "x", **options: Any) -> list[JsonObject]:  # noqa: ANN401 - passed on
    calls = backwards_calls(ScriptedModel.of([{"text": text}]), **options)
    return list(Caller().ask(calls, kind, request))


def refusal(events: list[JsonObject]) -> str:
    error, end = events
    assert (error["event"], end["event"]) == ("error", "end")
    return str(error["message"])


def test_structured_output_comes_with_the_last_chunk() -> None:
    *chunks, last, end = ask(
        "llm_structured_output", {**ASKING, "structured_output_schema": SCHEMA}, '{"city": "Köln"}'
    )
    assert end["event"] == "end"
    assert {chunk["data"]["structured_output"] for chunk in chunks} == {None}
    assert last["data"]["structured_output"] == {"city": "Köln"}


def test_structured_output_that_is_not_an_object_is_an_error_of_the_api() -> None:
    *_, error, end = ask("llm_structured_output", {**ASKING, "structured_output_schema": SCHEMA}, "[1]")
    assert (error["event"], end["event"]) == ("error", "end")
    assert error["message"].startswith("read llm structured output failed: request failed: Failed to parse")


def test_a_message_of_a_role_that_dify_does_not_know_is_refused_by_its_api() -> None:
    developer = {**ASKING, "prompt_messages": [{"role": "developer", "content": "Hi"}]}
    assert refusal(ask("llm", developer)).startswith(
        'invoke llm model failed: request failed with status code: 400 and respond with: {"code":"invalid_param"'
    )


@pytest.mark.parametrize("value", ["explodes", "http_200", {"http": 99}, {}, {"fault": "closes", "http": 500}, 5])
def test_the_error_for_an_unknown_fault_lists_the_known_ones(value: object) -> None:
    with pytest.raises(ValueError, match=r"closes_mid_chunk, .*http_500 or another status"):
        read_fault(value)


@pytest.mark.parametrize(("places", "kept"), [(0, 1_000), (128, 128)])
def test_messages_that_come_faster_than_a_run_is_read_are_lost_and_reported(places: int, kept: int) -> None:
    losses: list[str] = []
    declaration = PluginDeclaration.read(PUPPET)
    session = Session("s", declaration, lambda _: None, lambda _: None, QueuePlaces(places, losses.append))
    for _ in range(1_000):
        session.deliver(Streamed({"type": "text"}))
        session.deliver(Streamed({"type": "blob_chunk"}))  # is merged before it waits
    messages = session.messages(lambda *_: None, PATIENCE)
    read = [next(messages)["type"] for _ in range(kept + 1_000)]
    assert read.count("text") == kept
    assert losses == ["a message (text) was lost: 128 waited before it"] * (1_000 - kept)
    session.deliver(Streamed({"type": "link"}))
    assert next(messages)["type"] == "link"


def test_parts_of_an_answer_that_come_faster_than_a_plugin_reads_are_lost_and_reported() -> None:
    writing = threading.Event()
    read = threading.Event()
    ended = threading.Event()
    heard: list[object] = []

    def hear(envelope: JsonObject) -> None:
        writing.set()
        assert read.wait(PATIENCE)
        heard.append(envelope["data"]["event"])
        if heard[-1] == "end":
            ended.set()

    class Fast:
        description = ModelDescription("p", "m", "", scripted=True)

        def invoke(self, _request: ModelRequest, /) -> Iterator[JsonObject]:
            yield chunk("m", text="x")
            assert writing.wait(PATIENCE)
            yield from (chunk("m", text="x") for _ in range(20))
            read.set()

    calls = backwards_calls(Fast(), limits=HostLimits(burst_messages=1))
    session = Session("s", PluginDeclaration.read(PUPPET), hear, lambda _: None)
    calls.answer(session, Invoked("r", "llm", ASKING))
    assert ended.wait(PATIENCE)
    assert heard == ["response"] * (1 + 8) + ["end"]
    assert [finding.rule for finding in calls.findings] == ["answer-lost"] * 12
