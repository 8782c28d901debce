"""The text that the user sees, with thoughts in ``<think>`` blocks that are always closed.

In: answers and thoughts as they stream. Out: the text to write next. An unclosed block would swallow the rest of the
answer in Dify's web page (dify-contract §3).
"""

from internal.thinking import CLOSE, OPEN


class TextStream:
    """Remembers whether a block is open and how the text so far ends."""

    def __init__(self) -> None:
        self._in_thought = False
        self._end = ""  # the last two characters written

    def thought(self, text: str) -> str:
        """A piece of thought; a tag that it merely quotes would open a block within the block."""
        quoted = text.replace(OPEN, "&lt;think&gt;").replace(CLOSE, "&lt;/think&gt;")
        if self._in_thought:
            return self._write(quoted)
        self._in_thought = True
        return self._write(f"{self._gap(1)}{OPEN}\n{quoted}")

    def answer(self, text: str) -> str:
        return self.close_thought() + self._write(text)

    def new_paragraph(self) -> str:
        """Set off what comes next from what stands there; nothing at the very beginning."""
        return self.close_thought() + self._write(self._gap(2))

    def close_thought(self) -> str:
        if not self._in_thought:
            return ""
        self._in_thought = False
        return self._write(f"\n{CLOSE}\n")

    def _gap(self, newlines: int) -> str:
        there = len(self._end) - len(self._end.rstrip("\n"))
        return "\n" * max(0, newlines - there) if self._end else ""

    def _write(self, text: str) -> str:
        self._end = (self._end + text)[-2:]
        return text
