"""Thoughts and visible text, told apart while they stream.

In: a model's text in chunks cut anywhere. Out: pieces of text and of thought, the same whatever the cuts. A closed
``<think>…</think>`` outside code is a thought; an unclosed one only at the start, after a block, or when tool calls
follow. Text that merely quotes the tag keeps its words.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

OPEN, CLOSE = "<think>", "</think>"

_MARK = re.compile(r"<think>|`+|~+|\n")
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")
_FENCE_LENGTH = 3
_DEEPEST_INDENT = 3
"""Spaces before a fence; with four the line is indented code (CommonMark 4.5)."""


class PieceKind(StrEnum):
    TEXT = "text"
    THOUGHT = "thought"


@dataclass(frozen=True)
class Piece:
    kind: PieceKind
    text: str


class ThoughtSplitter:
    """Splits one turn's text; ``feed`` it chunks, then ``finish`` it once.

    What cannot be judged yet is kept in the buffer: a tag cut by a chunk border, a ``<think>`` in the middle of text
    until its end is seen, a fence until its line is whole.
    """

    def __init__(self) -> None:
        self._buffer = ""
        self._in_thought = False
        self._may_open_unclosed = True  # at the start of the turn or after a block
        self._fence = ""  # the run of ` or ~ that opened the code block we are in
        self._code_run = 0  # length of the backtick run that opened the inline code we may be in
        self._indent: int | None = 0  # spaces since the line began; None once anything else stood on it
        self._searched = 0  # how much of the buffer is known to hold no </think>
        self._undecided = 0  # how much of the buffer is known not to decide whether inline code is closed
        self._final = False
        self._calls_follow = False
        self._pieces: list[Piece] = []

    def feed(self, chunk: str) -> list[Piece]:
        """Take a chunk and return what is certain by now, in order."""
        self._buffer += chunk
        return self._drain()

    def finish(self, *, calls_follow: bool) -> list[Piece]:
        """Say that the turn has ended, and whether tool calls came with it; return the rest."""
        self._final, self._calls_follow = True, calls_follow
        return self._drain()

    def _drain(self) -> list[Piece]:
        while self._buffer and self._step():
            pass
        pieces, self._pieces = self._pieces, []
        return pieces

    def _step(self) -> bool:
        """Judge the beginning of the buffer; False when that needs more text."""
        if self._in_thought:
            return self._continue_thought()
        if self._fence:
            return self._continue_fence()
        return self._continue_text()

    def _continue_thought(self) -> bool:
        end = self._buffer.find(CLOSE)
        if end >= 0:
            self._emit(PieceKind.THOUGHT, end)
            self._pieces.append(Piece(PieceKind.THOUGHT, "\n"))  # apart from the next block, should one follow
            self._skip(len(CLOSE))
            self._in_thought, self._may_open_unclosed, self._indent = False, True, 0
            return True
        return self._emit(PieceKind.THOUGHT, self._certain_length(CLOSE))

    def _continue_fence(self) -> bool:
        """Pass on the code block line by line; the line that closes it may be one that is still coming in."""
        line, newline, _ = self._buffer.partition("\n")
        may_close = self._indent == 0 and re.fullmatch(rf" {{0,3}}{self._fence[0]}*[ \t]*", line)
        if not newline and may_close and not self._final:
            return False
        closes = self._indent == 0 and re.fullmatch(rf" {{0,3}}{re.escape(self._fence)}{self._fence[0]}*[ \t]*", line)
        self._indent = 0 if newline else None
        if closes:
            self._fence = ""
        return self._emit_text(len(line) + len(newline))

    def _continue_text(self) -> bool:
        mark = _MARK.search(self._buffer)
        if mark is None:
            return self._pass_plain_text(self._certain_length(OPEN))
        if mark.start() > 0:
            return self._pass_plain_text(mark.start())
        if mark.group() == "\n":
            return self._end_line()
        if mark.group() == OPEN:
            return self._open_thought()
        if mark.end() == len(self._buffer) and not self._final:
            return False  # the run may go on
        return self._pass_run(mark.group())

    def _pass_plain_text(self, length: int) -> bool:
        text = self._buffer[:length]
        if self._indent is not None:
            self._indent = self._indent + len(text) if not text.strip(" ") else None
        return self._emit_text(length)

    def _end_line(self) -> bool:
        """A paragraph's end is the end of any inline code in it; whether the next line is blank may still be open."""
        if self._code_run:
            following = self._buffer[1:].lstrip(" \t")
            if not following and not self._final:
                return False
            if following.startswith("\n"):
                self._code_run = 0
        self._indent = 0
        return self._emit_text(1)

    def _pass_run(self, run: str) -> bool:
        """Judge a run of backticks or tildes: it opens a code block, opens or closes inline code, or is text."""
        opens_line = self._indent is not None and self._indent <= _DEEPEST_INDENT
        if opens_line and len(run) >= _FENCE_LENGTH and not self._code_run:
            info, newline, _ = self._buffer[len(run) :].partition("\n")
            if run[0] == "~" or "`" not in info:
                if not newline and not self._final:
                    return False
                self._fence = run
                self._indent = 0 if newline else None
                return self._emit_text(len(run) + len(info) + len(newline))
        self._indent = None
        if run[0] == "`":
            if not self._code_run:
                self._code_run = len(run)
            elif self._code_run == len(run):
                self._code_run = 0
        return self._emit_text(len(run))

    def _open_thought(self) -> bool:
        if self._code_run:
            closed = self._inline_code_is_closed()
            if closed is None:
                return False
            if closed:
                return self._pass_plain_text(len(OPEN))
            self._code_run = 0
        if not self._may_open_unclosed and not self._is_closed_ahead():
            if not self._final:
                return False
            if not self._calls_follow:
                return self._pass_plain_text(len(OPEN))
        self._skip(len(OPEN))
        self._in_thought = True
        return True

    def _inline_code_is_closed(self) -> bool | None:
        """Whether the inline code around the buffer's start has an end in its paragraph; None if that is not known."""
        news = self._buffer[self._undecided :]
        if self._undecided and not self._final and "`" not in news and "\n" not in news:
            return None
        closing = next((run for run in re.finditer("`+", self._buffer) if len(run.group()) == self._code_run), None)
        if closing and (closing.end() < len(self._buffer) or self._final):
            return _PARAGRAPH_END.search(self._buffer, 0, closing.start()) is None
        if self._final or _PARAGRAPH_END.search(self._buffer):
            return False
        self._undecided = len(self._buffer)
        return None

    def _is_closed_ahead(self) -> bool:
        found = self._buffer.find(CLOSE, self._searched) >= 0
        self._searched = 0 if found else max(0, len(self._buffer) - len(CLOSE))
        return found

    def _certain_length(self, tag: str) -> int:
        """How much of the buffer cannot be the beginning of the tag."""
        return len(self._buffer) - (0 if self._final else length_of_beginning(tag, self._buffer))

    def _emit_text(self, length: int) -> bool:
        if self._buffer[:length].strip():
            self._may_open_unclosed = False
        return self._emit(PieceKind.TEXT, length)

    def _emit(self, kind: PieceKind, length: int) -> bool:
        """Move the buffer's beginning to the output; whether there was any."""
        if length:
            self._pieces.append(Piece(kind, self._buffer[:length]))
            self._skip(length)
        return length > 0

    def _skip(self, length: int) -> None:
        self._buffer = self._buffer[length:]
        self._searched = self._undecided = 0


def length_of_beginning(tag: str, text: str) -> int:
    """How many characters at the end of a text may be the beginning of a tag that the next chunk completes."""
    longest = min(len(tag) - 1, len(text))
    return next((length for length in range(longest, 0, -1) if text.endswith(tag[:length])), 0)


def split_thoughts(text: str, *, calls_follow: bool = False) -> list[Piece]:
    """Split a text that is there as a whole."""
    splitter = ThoughtSplitter()
    return splitter.feed(text) + splitter.finish(calls_follow=calls_follow)


def without_thoughts(text: str) -> str:
    """The visible text alone, without the blank lines that its thoughts leave around it."""
    pieces = split_thoughts(text)
    if all(piece.kind is PieceKind.TEXT for piece in pieces):
        return text
    return "".join(piece.text for piece in pieces if piece.kind is PieceKind.TEXT).strip()
