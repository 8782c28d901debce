"""The text that the user sees, with thoughts in ``<think>`` blocks that are always closed.

In: answers and thoughts as they stream. Out: the text to write next. An unclosed block would swallow the rest of the
answer in Dify's web page (dify-contract §3), and so would a tag that an answer or a thought merely quotes.
"""

from collections.abc import Iterator

from internal.think_tags import CLOSE, OPEN, QuotedTags

LARGEST_TEXT = 256 * 1024
"""Bytes of one text message in UTF-8."""
_LONGEST_CHARACTER = 4


class TextStream:
    """Remembers whether a block is open and how the text so far ends."""

    def __init__(self) -> None:
        self._in_thought = False
        self._end = ""  # the last two characters written
        self._quoted = QuotedTags()

    def thought(self, text: str) -> str:
        """A piece of thought."""
        opening = "" if self._in_thought else self.finish() + self._write(f"{self._gap(1)}{OPEN}\n")
        self._in_thought = True
        return opening + self._write(self._quoted.feed(text))

    def answer(self, text: str) -> str:
        return self.close_thought() + self._write(self._quoted.feed(text))

    def new_paragraph(self) -> str:
        """Set off what comes next from what stands there; nothing at the very beginning."""
        return self.finish() + self._write(self._gap(2))

    def close_thought(self) -> str:
        """What ends an open block; an answer may go on, and what waits of it stays."""
        return self.finish() if self._in_thought else ""

    def finish(self) -> str:
        """What is still to be written of the thought or answer so far."""
        closing, self._in_thought = f"\n{CLOSE}\n" if self._in_thought else "", False
        return self._write(self._quoted.finish() + closing)

    def _gap(self, newlines: int) -> str:
        there = len(self._end) - len(self._end.rstrip("\n"))
        return "\n" * max(0, newlines - there) if self._end else ""

    def _write(self, text: str) -> str:
        self._end = (self._end + text[-2:])[-2:]
        return text


def message_texts(text: str) -> Iterator[str]:
    """A text in pieces of at most LARGEST_TEXT bytes; no character is cut."""
    start = 0
    while start < len(text):
        piece = text[start : start + LARGEST_TEXT]
        if len(piece) > LARGEST_TEXT // _LONGEST_CHARACTER:
            piece = piece.encode()[:LARGEST_TEXT].decode(errors="ignore")
        yield piece
        start += len(piece)
