"""Model requests as Dify's core hands them to a model plugin, for the tests of the backends."""

from collections.abc import Sequence
from typing import Any

from devhost.models.backend import ModelRequest

SEARCH = {
    "name": "search",
    "description": "Finds things.",
    "parameters": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
}
PICTURE = {"type": "image", "format": "png", "mime_type": "image/png", "base64_data": "cGljdHVyZQ=="}
LETTER = {
    "type": "document",
    "format": "pdf",
    "mime_type": "application/pdf",
    "base64_data": "bGV0dGVy",
    "filename": "letter.pdf",
}


def model_request(
    messages: Sequence[object] = ({"role": "user", "content": "Hi"},),
    *,
    model: str = "gpt-5",
    tools: Sequence[object] | None = None,
    stop: Sequence[str] = (),
    **params: object,
) -> ModelRequest:
    return ModelRequest.model_validate(
        {
            "provider": "devhost/openai/responses",
            "model": model,
            "model_type": "llm",
            "mode": "chat",
            "completion_params": params,
            "prompt_messages": list(messages),
            "tools": tools,
            "stop": list(stop),
            "stream": True,
        }
    )


def call(call_id: str, q: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "search", "arguments": f'{{"q": "{q}"}}'}}


def result(call_id: str, content: object) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "name": "search", "content": content}
