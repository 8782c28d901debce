"""A plugin's backwards calls without a plugin: what the daemon answers, and what it refuses."""

from typing import Any

import pytest

from devhost import ScriptedModel
from devhost.protocol.failures import read_fault
from devhost.protocol.wire import JsonObject
from support.daemon_golden import Caller, backwards_calls

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
