"""Where the daemon and Dify are strict about a request for a model, and where they are not."""

from typing import Any

import pytest

from devhost.errors import RefusedCallError
from devhost.model_request import AssistantMessage, decode_model_request

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def request(**changes: object) -> dict[str, Any]:
    return {
        "provider": "p",
        "model": "m",
        "model_type": "llm",
        "mode": "chat",
        "completion_params": {},
        "prompt_messages": [{"role": "user", "content": "Hi"}],
        "tools": None,
        "stop": None,
        "stream": True,
        **changes,
    }


def messages(*given: object) -> dict[str, Any]:
    return request(prompt_messages=list(given))


@pytest.mark.parametrize(
    "accepted",
    [
        request(),
        request(tools=[{"name": "f", "description": "", "parameters": {"type": "object"}}], stop=["x"]),
        messages({"role": "system", "content": "s"}, {"role": "assistant", "content": None, "tool_calls": [CALL]}),
        messages({"role": "tool", "content": "r", "tool_call_id": "c", "name": "f", "unknown": 1}),
        messages({"role": "user", "content": [{"type": "text", "data": "t", "opaque_body": {"dropped": True}}]}),
        messages(
            {"role": "user", "content": [{"type": "image", "format": "png", "mime_type": "image/png", "url": "u"}]}
        ),
    ],
)
def test_accepted(accepted: dict[str, Any]) -> None:
    assert decode_model_request(accepted, "keep").model == "m"


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (request(completion_params=None), "completion_params"),
        (request(mode=None), "mode"),
        (request(stop="x"), "stop"),
        (request(stop=[1]), r"stop\[0\]"),
        (request(stream="true"), "stream"),
        (request(model_type="rerank"), "model_type"),
        (request(tools=[{"name": "f", "description": "d", "parameters": []}]), r"tools\[0\]\.parameters"),
        (request(tools=[{"name": "f", "description": None, "parameters": {}}]), r"tools\[0\]\.description"),
        (request(prompt_messages=None), "prompt_messages"),
        (messages({"role": "developer", "content": "x"}), "prompt_messages.*developer"),
        (messages({"role": "tool", "content": "x"}), "tool_call_id"),
        (messages({"role": "user", "content": [{"type": "surprise"}]}), "surprise"),
        (messages({"role": "assistant", "content": "", "tool_calls": None}), "tool_calls"),
        (messages({"role": "assistant", "content": "", "tool_calls": [{**CALL, "id": None}]}), r"tool_calls\[0\]\.id"),
        (
            messages({"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": {}}}]}),
            r"tool_calls\[0\]\.function\.arguments",
        ),
    ],
)
def test_refused(refused: dict[str, Any], words: str) -> None:
    with pytest.raises(RefusedCallError, match=words):
        decode_model_request(refused, "keep")


def test_opaque_bodies_are_kept_dropped_or_refused() -> None:
    carrying = messages({"role": "assistant", "content": "", "opaque_body": {"items": []}})

    def body(policy: Any) -> object:  # noqa: ANN401 - a literal, from a loop
        (message,) = decode_model_request(carrying, policy).prompt_messages
        assert isinstance(message, AssistantMessage)
        return message.opaque_body

    assert [body("keep"), body("drop")] == [{"items": []}, None]
    with pytest.raises(
        RefusedCallError, match=r"prompt_messages\[0\]\.opaque_body.*must be an array or slice, got map"
    ):
        body("refuse")
    assert decode_model_request(request(), "refuse").model == "m"
