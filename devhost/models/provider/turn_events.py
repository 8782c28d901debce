"""What a provider's stream says, whichever API it came over: text, pieces of tool calls, and the end of the turn.

Text carries thoughts as `<think>` blocks, which `ThoughtText` opens and closes.
"""

import re
from dataclasses import dataclass
from typing import Any

from devhost.models.provider.tokens import TokenCounts
from devhost.protocol.wire import JsonObject


@dataclass(frozen=True)
class Said:
    text: str


@dataclass(frozen=True)
class Called:
    """Tool calls, or fragments of them, in the form of a chunk's `tool_calls`."""

    calls: tuple[JsonObject, ...]


@dataclass(frozen=True)
class Finished:
    reason: str
    calls: tuple[JsonObject, ...] = ()
    opaque_body: Any = None
    tokens: TokenCounts | None = None
    """None when the server did not count."""


type TurnEvent = Said | Called | Finished

_BLOCK = re.compile(r"<think>\n.*?\n</think>\n*", re.DOTALL)


class ThoughtText:
    """Joins thoughts and answer into one text, with the thoughts between tags."""

    def __init__(self) -> None:
        self._thinking = False

    def thought(self, text: str) -> str:
        if not text:
            return ""
        opening = "" if self._thinking else "<think>\n"
        self._thinking = True
        return opening + text

    def words(self, text: str) -> str:
        return self.end() + text if text else ""

    def end(self) -> str:
        if not self._thinking:
            return ""
        self._thinking = False
        return "\n</think>\n"


def text_of(value: object) -> str:
    """The text of a field that may be absent; the client passes on any value that the server sent."""
    if not isinstance(value, str | None):
        raise TypeError(f"{value!r} is not a text")
    return value or ""


def without_thoughts(text: str) -> str:
    """The text for a provider: without the thoughts that `ThoughtText` put in."""
    return _BLOCK.sub("", text)
