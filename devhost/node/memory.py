"""A conversation as the node's memory hands it to a strategy: docs/host-facts.md, "Conversation memory".

In: each turn's question with its files, and the raw answer, thoughts included. Out: user and assistant messages, the
oldest dropped first, one by one, until about 2,000 tokens are left; the newest stays however long it is. Tool calls
are not in it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from devhost.plugin.casting import FILE_IDENTITY
from devhost.protocol.wire import JsonObject

WINDOW_TOKENS = 2000
WINDOW_TURNS = 500
CHARACTERS_PER_TOKEN = 4
MEDIA = ("image", "audio", "video", "document")


@dataclass(frozen=True)
class PastTurn:
    question: str
    answer: str
    """The raw answer. Empty for a turn that failed: Dify keeps its question alone."""
    files: tuple[JsonObject, ...] = ()


class Memory:
    def __init__(self) -> None:
        self._turns: list[PastTurn] = []

    def add(self, turn: PastTurn) -> None:
        self._turns.append(turn)

    def messages(self) -> list[JsonObject]:
        return window(self.all_messages())

    def all_messages(self) -> list[JsonObject]:
        """For nodes with a window of their own."""
        return [message for turn in self._turns for message in _messages(turn)]


def window(messages: Sequence[JsonObject], tokens: int = WINDOW_TOKENS, turns: int | None = None) -> list[JsonObject]:
    """The newest messages: of so many turns, 500 by default and at most, and of about so many tokens."""
    questions = [position for position, message in enumerate(messages) if message["role"] == "user"]
    kept = messages[questions[-min(turns or WINDOW_TURNS, WINDOW_TURNS, len(questions))] :] if questions else messages
    counted = [_tokens(message) for message in kept]
    dropped = 0
    while sum(counted[dropped:]) > tokens and dropped < len(kept) - 1:
        dropped += 1
    return list(kept[dropped:])


def estimated_tokens(text: str) -> int:
    """Four ASCII characters are about one token, any other character is one. Dify asks the model's own tokenizer."""
    ascii_characters = sum(character.isascii() for character in text)
    return -(-ascii_characters // CHARACTERS_PER_TOKEN) + len(text) - ascii_characters


def files_among(parameters: Mapping[str, object]) -> tuple[JsonObject, ...]:
    """The question's files, from any parameter."""
    values = [item for value in parameters.values() for item in (value if isinstance(value, list) else [value])]
    return tuple(item for item in values if isinstance(item, dict) and item.get("dify_model_identity") == FILE_IDENTITY)


def _messages(turn: PastTurn) -> Iterator[JsonObject]:
    parts = [_part(file) for file in turn.files if file.get("type") in MEDIA]
    question = [*parts, {"type": "text", "data": turn.question}] if parts else turn.question
    yield {"role": "user", "content": question, "name": None}
    yield {"role": "assistant", "content": turn.answer, "name": None, "tool_calls": []}


def _part(file: JsonObject) -> JsonObject:
    kind = file["type"]
    return {
        "type": kind,
        "format": str(file.get("extension") or "").lstrip("."),
        "mime_type": file.get("mime_type") or "",
        "filename": file.get("filename") or "",
        "url": file.get("url") or "",
        "base64_data": file.get("base64_data") or "",
        **({"detail": "high"} if kind == "image" else {}),
    }


def _tokens(message: JsonObject) -> int:
    content = message["content"]
    if isinstance(content, str):
        return estimated_tokens(content)
    return sum(estimated_tokens(part.get("data", "")) for part in content)
