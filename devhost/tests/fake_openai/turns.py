"""What the fake's model does when it is asked, whichever API it is asked over."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Call:
    name: str
    arguments: Mapping[str, Any] | str
    id: str = ""
    """Issued by the server when blank."""

    @property
    def arguments_text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True)
class Tokens:
    prompt: int = 100
    cached: int = 0
    written: int = 0
    completion: int = 20
    reasoning: int = 0


@dataclass(frozen=True)
class Turn:
    text: str = ""
    summary: str = ""
    """What a reasoning model tells of its thoughts; a paragraph is a summary part."""
    calls: tuple[Call, ...] = ()
    tokens: Tokens | None = Tokens()
    """None from a server that does not count."""
    incomplete: str | None = None
    """max_output_tokens or content_filter."""
    error: tuple[str, str] | None = None
    """Code and message of a failure after the stream has begun."""
    cut_after: int | None = None
    """The connection breaks off after so many events."""
    ends_after: int | None = None
    """The stream ends in good order after so many events, before it is complete."""
    splits: tuple[int, ...] = ()
    """Offsets of the stream's bytes at which it is torn in pieces."""
    piece: int = 7
    """Characters of a delta."""
    interleaved: bool = False
    """Chat: the arguments of all calls side by side."""
    events: tuple[object, ...] = ()
    """Streamed as they are instead of the turn's own, however odd."""

    def pieces(self, text: str) -> list[str]:
        return [text[start : start + self.piece] for start in range(0, len(text), self.piece)]
