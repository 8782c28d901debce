"""Where the daemon and Dify are strict about a request for a model, and where they are not."""

from typing import Any

import pytest

from devhost.errors import RefusedCallError
from devhost.models.backend import AssistantMessage, decode_model_request

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


def test_opaque_bodies_are_kept_dropped_or_refused() -> None:
    carrying = messages({"role": "assistant", "content": "", "tool_calls": [], "opaque_body": {"items": []}})

    def body(policy: Any) -> object:  # noqa: ANN401 - a literal, from a loop
        (message,) = decode_model_request(carrying, policy).prompt_messages
        assert isinstance(message, AssistantMessage)
        return message.opaque_body

    assert body("keep") == {"items": []}
    for policy in ("drop", "refuse"):
        with pytest.raises(
            RefusedCallError, match=r"prompt_messages\[0\]\.opaque_body.*must be an array or slice, got map"
        ):
            body(policy)
    assert decode_model_request(request(), "refuse").model == "m"
