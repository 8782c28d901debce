"""One model call, as it is sent to the host, and the opaque bodies that a request may carry."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dify_plugin.entities.model.llm import LLMModelConfig
from dify_plugin.entities.model.message import AssistantPromptMessage, PromptMessage, PromptMessageTool

MAX_REQUEST_BYTES = 4 * 1024 * 1024
"""Bytes; the daemon kills a plugin whose stdout line exceeds 5 MiB: docs/host-facts.md, "Size limits"."""


@dataclass(frozen=True)
class ModelRequest:
    """What one model call sends."""

    config: LLMModelConfig
    messages: Sequence[PromptMessage]
    tools: Sequence[PromptMessageTool] = ()
    stop: Sequence[str] = ()

    def carries_opaque_body(self) -> bool:
        return any(carries_opaque_body(message) for message in self.messages)


def carries_opaque_body(message: PromptMessage) -> bool:
    """Whether the message itself or a part of it has one."""
    return without_opaque_body(message) is not message


def without_opaque_body(message: PromptMessage) -> PromptMessage:
    """The message itself when neither it nor a part of it has one."""
    nothing: dict[str, Any] = {"opaque_body": None}
    changes: dict[str, Any] = {}
    if isinstance(message, AssistantPromptMessage) and message.opaque_body is not None:
        changes |= nothing
    if isinstance(message.content, list) and any(part.opaque_body is not None for part in message.content):
        changes["content"] = [part.model_copy(update=nothing) for part in message.content]
    return message.model_copy(update=changes) if changes else message
