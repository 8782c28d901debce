"""How much a message or a tool takes of a model's context window and of a request's line.

In: messages and tools as the SDK sends them. Out: their Weight. Tokens are estimated: tokenizers download vocabularies
or refuse texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    MultiModalPromptMessageContent,
    PromptMessage,
    PromptMessageTool,
)
from pydantic_core import to_json

_TOKENS_OF_A_MEDIUM = 1_000


@dataclass(frozen=True)
class Weight:
    tokens: int = 0
    size: int = 0
    """Bytes on the wire."""

    def __add__(self, other: "Weight") -> "Weight":
        return Weight(self.tokens + other.tokens, self.size + other.size)

    def __sub__(self, other: "Weight") -> "Weight":
        return Weight(self.tokens - other.tokens, self.size - other.size)


def estimate_tokens(text: str) -> int:
    """ASCII characters / 4 + other characters."""
    ascii_characters = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return ascii_characters // 4 + len(text) - ascii_characters


def weight_of_tools(tools: Sequence[PromptMessageTool]) -> Weight:
    """The weight of tools beside the messages."""
    written = ",".join(tool.model_dump_json() for tool in tools)
    return Weight(estimate_tokens(written), len(written.encode()))


def weight_of(message: PromptMessage) -> Weight:
    """The weight of one message; its size is never less than what the SDK writes."""
    tokens = 0
    if isinstance(message.content, str):
        tokens = estimate_tokens(message.content)
    for part in message.content if isinstance(message.content, list) else ():
        is_medium = isinstance(part, MultiModalPromptMessageContent)
        tokens += _TOKENS_OF_A_MEDIUM if is_medium else estimate_tokens(part.data)
        tokens += _tokens_of_opaque_body(part.opaque_body)
    if isinstance(message, AssistantPromptMessage):
        tokens += _tokens_of_opaque_body(message.opaque_body)
        tokens += sum(estimate_tokens(call.function.name + call.function.arguments) for call in message.tool_calls)
    return Weight(tokens, len(message.model_dump_json().encode()) + 2)


def _tokens_of_opaque_body(opaque_body: Any) -> int:  # noqa: ANN401 - the provider's
    """As if it were text: a provider counts the reasoning that it unpacks from it."""
    return 0 if opaque_body is None else estimate_tokens(to_json(opaque_body).decode())
