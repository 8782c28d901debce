"""What the engine's model nodes ask for besides a model: where an answer's files go, and how prompts are kept."""

from collections.abc import Sequence
from typing import override

from graphon.file.enums import FileType
from graphon.file.models import File
from graphon.model_runtime.entities.llm_entities import LLMMode
from graphon.model_runtime.entities.message_entities import (
    AssistantPromptMessage,
    MultiModalPromptMessageContent,
    PromptMessage,
)
from graphon.nodes.llm.exc import LLMNodeError
from graphon.nodes.llm.file_saver import LLMFileSaver
from graphon.nodes.llm.runtime_protocols import PromptMessageSerializerProtocol

from devhost.protocol.wire import JsonObject

ONLY_TEXT = "devhost's models answer with text only"
SHOWN = 10
"""Characters at each end of a file's data."""


class NoFiles(LLMFileSaver):
    @override
    def save_binary_string(
        self, data: bytes, mime_type: str, file_type: FileType, extension_override: str | None = None
    ) -> File:
        raise LLMNodeError(ONLY_TEXT)

    @override
    def save_remote_url(self, url: str, file_type: FileType) -> File:
        raise LLMNodeError(ONLY_TEXT)


class PromptsAsSaved(PromptMessageSerializerProtocol):
    """As Dify keeps them in a node's process data: role, text and the beginnings of files."""

    @override
    def serialize(self, *, model_mode: LLMMode, prompt_messages: Sequence[PromptMessage]) -> list[JsonObject]:
        return [_saved(message) for message in prompt_messages]


def _saved(message: PromptMessage) -> JsonObject:
    parts = message.content if isinstance(message.content, list) else []
    files = [
        {"type": part.type.value, "data": f"{part.data[:SHOWN]}...[TRUNCATED]...{part.data[-SHOWN:]}"}
        for part in parts
        if isinstance(part, MultiModalPromptMessageContent)
    ]
    calls = message.tool_calls if isinstance(message, AssistantPromptMessage) else []
    called = {"tool_calls": [call.model_dump(mode="json") for call in calls]} if calls else {}
    return {"role": message.role.value, "text": message.get_text_content(), "files": files, **called}
