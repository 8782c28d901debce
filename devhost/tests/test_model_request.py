"""A request for a model whose message carries a body of its provider, as older and newer daemons take it."""

from typing import Any

import pytest

from devhost.errors import RefusedCallError
from devhost.models.backend import AssistantMessage, decode_model_request


def test_opaque_bodies_are_kept_dropped_or_refused() -> None:
    said = {"role": "assistant", "content": "", "tool_calls": [], "opaque_body": {"items": []}}
    names = {"provider": "p", "model": "m", "model_type": "llm", "mode": "chat"}
    carrying = {**names, "completion_params": {}, "prompt_messages": [said]}

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
