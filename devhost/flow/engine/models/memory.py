"""The conversation before a turn, as nodes with memory get it."""

from collections.abc import Sequence
from typing import override

from graphon.model_runtime.entities.message_entities import AssistantPromptMessage, PromptMessage, UserPromptMessage
from graphon.model_runtime.memory.prompt_message_memory import PromptMessageMemory

from devhost.node.memory import WINDOW_TOKENS, window
from devhost.protocol.wire import JsonObject


class History(PromptMessageMemory):
    def __init__(self, messages: Sequence[JsonObject]) -> None:
        """Of users and assistants, the oldest first."""
        self._messages = messages

    @override
    def get_history_prompt_messages(
        self, max_token_limit: int = WINDOW_TOKENS, message_limit: int | None = None
    ) -> Sequence[PromptMessage]:
        """`message_limit` counts turns: Dify's message is a question with its answer."""
        kept = window(self._messages, tokens=max_token_limit, turns=message_limit)
        return [_prompt_message(message) for message in kept]


def _prompt_message(message: JsonObject) -> PromptMessage:
    kind = UserPromptMessage if message["role"] == "user" else AssistantPromptMessage
    return kind.model_validate(message)
