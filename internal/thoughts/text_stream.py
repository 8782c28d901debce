"""The text that the user sees, with thoughts in ``<think>`` blocks that are always closed.

In: answers and thoughts as they stream. Out: the text to write next. In Dify's web page an unclosed block would swallow
the rest of the answer, and so would a tag that an answer or a thought merely quotes (docs/host-facts.md, "Thinking
tags").
"""

from collections.abc import Iterator

from internal.thoughts.open_ends import Defused
from internal.thoughts.think_tags import CLOSE, OPEN, QuotedTags

MAX_TEXT_BYTES = 256 * 1024
"""Bytes of one text message in UTF-8."""
_MAX_CHARACTER_BYTES = 4


class TextStream:
    """Remembers whether a block is open and how the text so far ends."""

    def __init__(self, *, may_ask: bool = False) -> None:
        """With ``may_ask``, nothing in a thought swallows its end, and with it a question to the user behind it."""
        self._defused = Defused() if may_ask else None
        self._in_thought = False
        self._end = ""  # the last two characters written
        self._after_host = False  # the host may have written something since
        self._quoted = QuotedTags()

    def thought(self, text: str) -> str:
        """A piece of thought."""
        opening = "" if self._in_thought else self.finish() + self._write(f"{self._gap(1)}{OPEN}\n")
        self._in_thought = True
        harmless = self._defused.feed(text) if self._defused else text
        return opening + self._write(self._quoted.feed(harmless))

    def answer(self, text: str) -> str:
        closing = self.close_thought()
        gap = self._write(self._gap(1)) if text and self._after_host else ""
        return closing + gap + self._write(self._quoted.feed(text))

    def new_paragraph(self) -> str:
        """The line breaks between the text so far and what follows; none at the very beginning."""
        return self.finish() + self._write(self._gap(2))

    def leave_a_line(self) -> str:
        """End the line, because the host may add one; what follows begins on another line."""
        before = self.finish() + self._write(self._gap(1))
        self._after_host = True
        return before

    def close_thought(self) -> str:
        """The end of an open thought. An answer that is under way continues."""
        return self.finish() if self._in_thought else ""

    def finish(self) -> str:
        """What is still to be written of the thought or answer so far."""
        closing, self._in_thought = f"\n{CLOSE}\n" if self._in_thought else "", False
        return self._write(self._quoted.finish() + closing)

    def _gap(self, newlines: int) -> str:
        if self._after_host:
            return "\n" * (newlines if self._end else 1)
        there = len(self._end) - len(self._end.rstrip("\n"))
        return "\n" * max(0, newlines - there) if self._end else ""

    def _write(self, text: str) -> str:
        self._end = (self._end + text[-2:])[-2:]
        self._after_host = self._after_host and not text
        return text


def message_texts(text: str) -> Iterator[str]:
    """A text in pieces of at most MAX_TEXT_BYTES bytes; no character is cut."""
    start = 0
    while start < len(text):
        piece = text[start : start + MAX_TEXT_BYTES]
        if len(piece) > MAX_TEXT_BYTES // _MAX_CHARACTER_BYTES:
            piece = piece.encode()[:MAX_TEXT_BYTES].decode(errors="ignore")
        yield piece
        start += len(piece)
