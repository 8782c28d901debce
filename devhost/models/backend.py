"""The interface of a model, and the shape of its answer.

A backend takes a `ModelRequest` and yields chunks (see `chunk`), or raises `ModelCallError`, which reaches the plugin
in the words in which Dify passes a provider's error on. One backend may serve many calls at once.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from devhost.models.request import ModelRequest
from devhost.protocol.wire import JsonObject

type Features = tuple[str, ...]
DEFAULT_FEATURES: Features = ("tool-call", "multi-tool-call", "stream-tool-call", "vision")
FORWARDED_FEATURES = frozenset(
    {"tool-call", "multi-tool-call", "agent-thought", "vision", "stream-tool-call", "document", "video", "audio"}
)
"""Dify takes every other feature out of the entity before a strategy sees it."""


class ModelCallError(Exception):
    """A provider's error; `error_type` is one of Dify's Invoke…Error names."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.message = message

    def as_dify_words_it(self) -> str:
        details = {"error_type": self.error_type, "message": self.message, "args": {}}
        said = {"message": json.dumps(details), "error_type": "PluginInvokeError", "args": None}
        return f"PluginInvokeError: {json.dumps(said)}"


@dataclass(frozen=True)
class ModelDescription:
    """A model as a node's model selector describes it."""

    provider: str
    name: str
    notice: str
    """One line for the person at the terminal: which model answers."""
    scripted: bool
    features: Features = DEFAULT_FEATURES
    context_size: int | None = 400_000
    """None if it is not known, as for a model on another server."""
    completion_params: tuple[tuple[str, object], ...] = ()
    parameter_rules: tuple[JsonObject, ...] = ()

    def selector(self, history: Sequence[JsonObject]) -> JsonObject:
        """The value of a model-selector parameter, as the server sends it."""
        return {
            "provider": self.provider,
            "model": self.name,
            "model_type": "llm",
            "mode": "chat",
            "completion_params": dict(self.completion_params),
            "type": "model-selector",
            "history_prompt_messages": list(history),
            "entity": self._entity(),
        }

    def _entity(self) -> JsonObject:
        window = {} if self.context_size is None else {"context_size": self.context_size}
        return {
            "model": self.name,
            "label": {"en_US": self.name, "zh_Hans": self.name},
            "model_type": "llm",
            "features": [feature for feature in self.features if feature in FORWARDED_FEATURES],
            "fetch_from": "predefined-model",
            "model_properties": {"mode": "chat", **window},
            "deprecated": False,
            "parameter_rules": list(self.parameter_rules),
            "pricing": None,
        }


class ModelBackend(Protocol):
    """A model that answers a plugin's calls.

    `invoke` may be called from many threads. It raises `ModelCallError` for a failure of the provider; any other
    exception is a mistake in the backend and is raised by `Host.run`.
    """

    @property
    def description(self) -> ModelDescription: ...

    def invoke(self, request: ModelRequest, /) -> Iterator[JsonObject]:
        """The answer's chunks, as they come."""


def chunk(  # noqa: PLR0913 - a chunk's fields, by keyword
    model: str,
    *,
    text: str = "",
    tool_calls: Sequence[JsonObject] = (),
    opaque_body: object = None,
    usage: JsonObject | None = None,
    finish_reason: str | None = None,
) -> JsonObject:
    """One LLMResultChunk. Dify strips the prompt from it; a null content would be dropped by the daemon."""
    return {
        "model": model,
        "prompt_messages": [],
        "system_fingerprint": None,
        "delta": {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": text,
                "name": None,
                "tool_calls": list(tool_calls),
                "opaque_body": opaque_body,
            },
            "usage": usage,
            "finish_reason": finish_reason,
        },
    }


def tool_call(call_id: str, name: str, arguments: str) -> JsonObject:
    """One call for `chunk(tool_calls=[…])`; `arguments` is JSON as a text, or a part of it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
