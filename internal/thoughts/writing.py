"""The text that the user sees, with thoughts in ``<think>`` blocks that are always closed.

In: answers and thoughts as they stream. Out: the text to write next. Dify's page takes every such tag for a thought's,
in code too, and an open block swallows what follows (docs/host-facts.md, "Thinking tags"). So a tag that an answer or a
thought merely quotes is written with a word joiner after its ``<``: invisible, but not a tag any more.
"""

import re

TAG_NAME = "think"
OPEN, CLOSE = f"<{TAG_NAME}>", f"</{TAG_NAME}>"
_JOINER = "\u2060"


def beginning(word: str, then: str = "") -> str:
    """A pattern of every beginning of a word, also of none of it; ``then`` may follow the whole word."""
    pattern = then
    for letter in reversed(word):
        pattern = f"(?:{re.escape(letter)}{pattern})?"
    return pattern


def length_at_end(of: re.Pattern[str], text: str) -> int:
    """How many characters at the end of a text match, from its last ``<`` on."""
    start = text.rfind("<")
    return len(text) - start if start >= 0 and of.match(text, start) else 0


_NAME = rf"/?{TAG_NAME}(?![\w-])"
_NAMED = re.compile(rf"<(?={_NAME})", re.IGNORECASE)
_WAITS = re.compile(rf"</?{beginning(TAG_NAME)}\Z", re.IGNORECASE)
_QUOTED = re.compile(rf"<{_JOINER}(?={_NAME})", re.IGNORECASE)
_OPENS = re.compile(r"(?P<whole><|```|~~~|\$\$|\\\[)|(?:`{1,2}|~{1,2}|\$|\\)\Z")
r"""Markdown that may reach over its paragraph: HTML, code, mathematics (Dify's page writes ``$$`` for ``\[``). At the
end of a text stands what may become one of them with the next piece."""
_MARKS = re.compile(r"[<`~$\\]")
"""The characters that these consist of; a joiner after each takes the meaning away."""


def unquoted(text: str) -> str:
    """A text with its quoted tags as they were before TextStream wrote them."""
    return _QUOTED.sub("<", text)


class OpenEnds:
    """Finds where a text first may open a block that hides what follows; what comes after that is not looked at."""

    def __init__(self) -> None:
        self.is_found = False

    def harmless(self, text: str) -> int:
        """The length of what can be shown of a text, without the white space before what has to wait.

        The next text has to begin with what was not shown of this one.
        """
        found = None if self.is_found else _OPENS.search(text)
        if found is None:
            return 0 if self.is_found else len(text)
        self.is_found = found["whole"] is not None
        return len(text[: found.start()].rstrip())


class TextStream:
    """Remembers whether a block is open and how the text so far ends."""

    def __init__(self, *, may_ask: bool = False) -> None:
        """With ``may_ask``, nothing in a thought swallows its end, and with it a question to the user behind it."""
        self._breaks_marks = may_ask
        self._in_thought = False
        self._remarks: list[str] = []
        self._waiting = ""  # may become a tag with the next piece
        self._end = ""  # the last two characters written
        self._after_host = False  # the host may have written something since

    def remark(self, text: str) -> None:
        """A whole thought of our own, with which the next block begins.

        A block of its own would come closed, of which Dify's page shows no more than "Thought(0.0s)".
        """
        self._remarks.append(text)

    def thought(self, text: str) -> str:
        """A piece of thought; what remarks wait stand before it."""
        before = "" if self._in_thought else self._end_piece() + self._write(f"{self._gap(1)}{OPEN}\n")
        self._in_thought = True
        pieces = [*(f"{remark}\n\n" for remark in self._remarks), text]
        self._remarks = []
        return before + self._write(self._quoted("".join(map(self._harmless, pieces))))

    def answer(self, text: str) -> str:
        closing = self.close_thought()
        gap = self._write(self._gap(1)) if text and self._after_host else ""
        return closing + gap + self._write(self._quoted(text))

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
        return self._end_piece() if self._in_thought else ""

    def finish(self) -> str:
        """What is still to be written of the thought or answer so far, and of remarks."""
        last = self._remarks.pop() if self._remarks else ""
        return self._end_piece() + (self.thought(last) + self._end_piece() if last else "")

    def _end_piece(self) -> str:
        rest, self._waiting = self._waiting, ""
        closing, self._in_thought = f"\n{CLOSE}\n" if self._in_thought else "", False
        return self._write(_NAMED.sub(f"<{_JOINER}", rest) + closing)

    def _harmless(self, thought: str) -> str:
        return _MARKS.sub(rf"\g<0>{_JOINER}", thought) if self._breaks_marks else thought

    def _quoted(self, text: str) -> str:
        """A piece without tags, whatever follows their name: hosts differ in what they take for attributes."""
        text = self._waiting + text
        certain = len(text) - length_at_end(_WAITS, text)
        self._waiting = text[certain:]
        return _NAMED.sub(f"<{_JOINER}", text[:certain])

    def _gap(self, newlines: int) -> str:
        if self._after_host:
            return "\n" * (newlines if self._end else 1)
        there = len(self._end) - len(self._end.rstrip("\n"))
        return "\n" * max(0, newlines - there) if self._end else ""

    def _write(self, text: str) -> str:
        self._end = (self._end + text[-2:])[-2:]
        self._after_host = self._after_host and not text
        return text
