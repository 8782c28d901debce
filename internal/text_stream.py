"""The text that the user sees, with thoughts in ``<think>`` blocks that are always closed.

In: answers and thoughts as they stream. Out: the text to write next. An unclosed block would swallow the rest of the
answer in Dify's web page (dify-contract §3).
"""

from internal.thinking import CLOSE, OPEN, length_of_beginning


class TextStream:
    """Remembers whether a block is open and how the text so far ends."""

    def __init__(self) -> None:
        self._in_thought = False
        self._end = ""  # the last two characters written
        self._held = ""  # the end of a thought that may become a tag

    def thought(self, text: str) -> str:
        """A piece of thought; a tag that it merely quotes would open a block within the block."""
        opening = "" if self._in_thought else f"{self._gap(1)}{OPEN}\n"
        self._in_thought = True
        quoted = (self._held + text).replace(OPEN, "&lt;think&gt;").replace(CLOSE, "&lt;/think&gt;")
        certain = len(quoted) - max(length_of_beginning(OPEN, quoted), length_of_beginning(CLOSE, quoted))
        self._held = quoted[certain:]
        return self._write(opening + quoted[:certain])

    def answer(self, text: str) -> str:
        return self.close_thought() + self._write(text)

    def new_paragraph(self) -> str:
        """Set off what comes next from what stands there; nothing at the very beginning."""
        return self.close_thought() + self._write(self._gap(2))

    def close_thought(self) -> str:
        if not self._in_thought:
            return ""
        held, self._in_thought, self._held = self._held, False, ""
        return self._write(f"{held}\n{CLOSE}\n")

    def _gap(self, newlines: int) -> str:
        there = len(self._end) - len(self._end.rstrip("\n"))
        return "\n" * max(0, newlines - there) if self._end else ""

    def _write(self, text: str) -> str:
        self._end = (self._end + text)[-2:]
        return text
