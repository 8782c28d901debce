"""Separates thoughts from visible text in the model's text, and keeps them apart in the user's text."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, reduce
from html import unescape
from itertools import groupby
from operator import attrgetter

from internal.clock import in_turns

# Dify's page treats every such tag as a tag of a thought, even in code, and an open block hides the text after it
# (docs/host-facts.md, "Thinking tags"). In a tag that an answer or a thought only quotes, an invisible word joiner is
# inserted after the ``<``, so that it is no longer a tag.

MAX_STEP_LENGTH = 12 * 1024
"""Maximum characters that are processed at once, so that no step takes long."""
MAX_ATTRIBUTES_LENGTH = 100
"""Maximum characters between the name of a tag and its ``>``. Anything longer is not a tag."""
_JOINER = "\u2060"


def _beginning(word: str, then: str = "") -> str:
    """Return a pattern of every beginning of a word, even an empty one. ``then`` may follow the whole word."""
    return reduce(lambda pattern, letter: f"(?:{re.escape(letter)}{pattern})?", reversed(word), then)


def begun(tag: str) -> str:
    """Return a pattern of every beginning of a tag, with at least one character."""
    return f"{re.escape(tag[0])}{_beginning(tag[1:])}"


def _length_at_end(of: re.Pattern[str], text: str) -> int:
    """Return how many characters at the end of a text, from its last ``<`` on, match the pattern."""
    start = text.rfind("<")
    if start >= 0 and of.match(text, start):
        return len(text) - start
    return 0


_NAME = r"/?think(?![\w-])"
_NAMED = re.compile(rf"<(?={_NAME})", re.IGNORECASE)
_WRITING_WAITS = re.compile(rf"</?{_beginning('think')}\Z", re.IGNORECASE)
_QUOTED = re.compile(rf"<{_JOINER}(?={_NAME})", re.IGNORECASE)
OPENS_A_BLOCK = re.compile(r"(?P<whole><|```|~~~|\$\$|\\\[)|(?:`{1,2}|~{1,2}|\$|\\)\Z")
r"""Markdown that may extend beyond its paragraph and hide the text after it: HTML, code, mathematics (Dify's page
writes ``$$`` for ``\[``). At the end of a text, the pattern also matches what may become such Markdown with the next
piece."""
_MARKS = re.compile(r"[<`~$\\]")
"""The characters of such Markdown. A word joiner after a character removes its effect."""

_ATTRIBUTES = rf"(?:\s[^<>]{{0,{MAX_ATTRIBUTES_LENGTH}}})?"
_REST = rf"think{_ATTRIBUTES}(?<!/)>"  # `<think/>` opens nothing
_BLANKS = r"[ \t\r]{0,100}"
_LINE_END = re.compile(rf"{_BLANKS}(?:\n|\Z)")
_FENCE = re.compile(r" {0,3}(?P<run>`{3,}|~{3,})(?P<info>.*)")
_MAX_TAG_END = 300
"""Number of characters at the end of a text that are searched for the beginning of an incomplete tag."""
_MAX_FENCE_LINE = 200
"""Number of characters of a line that are checked for a code fence."""


@cache
def _patterns(tags: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return a pattern of a tag or a line end, and a pattern of a text that may become a tag with the next chunk.

    The second pattern includes a closing tag, because it may turn out to be the last on its line. ``tags`` are an
    opening and a closing tag in addition to ``<think>``.
    """
    opening, closing = [re.escape(tag) for tag in tags] or ["(?!)", "(?!)"]
    waiting = [rf"</?{_beginning('think', _ATTRIBUTES)}", f"(?:</{_REST}|{closing}){_BLANKS}", *map(begun, tags)]
    mark = rf"<(?P<closes>/?){_REST}|{opening}|(?P<closing>{closing})|\n+"
    return re.compile(mark, re.IGNORECASE), re.compile(rf"(?:{'|'.join(waiting)})\Z", re.IGNORECASE)


class TextStream:
    """The text that the user sees, with thoughts in ``<think>`` blocks that are always closed."""

    def __init__(self, *, may_ask: bool = False) -> None:
        """Create a stream. With ``may_ask``, nothing in a thought can hide the end of the thought and a question."""
        self._breaks_marks = may_ask
        self._in_thought = False
        self._remarks: list[str] = []
        self._waiting = ""  # text that may become a tag with the next piece
        self._end = ""  # the last two characters written
        self._after_host = False  # the host may have written something since
        self._line = ""  # the beginning of the answer's last line
        self._fence = ""  # the marks that opened the code block

    def remark(self, text: str) -> None:
        """Add a thought of the agent itself at the beginning of the next block.

        A separate block would already be closed, and Dify's page would show only "Thought(0.0s)".
        """
        self._remarks.append(text)

    def thought(self, text: str) -> str:
        """Write a piece of a thought, after the remarks that wait."""
        if self._in_thought:
            before = ""
        else:
            before = self._end_piece() + self._write(f"{self._gap(1)}<think>\n")
        self._in_thought = True
        text = "".join([*(f"{remark}\n\n" for remark in self._remarks), text])
        self._remarks = []
        return before + self._write(self._quoted(_MARKS.sub(rf"\g<0>{_JOINER}", text) if self._breaks_marks else text))

    def answer(self, text: str) -> str:
        closing = self.close_thought()
        gap = ""
        if text and self._after_host:
            gap = self._write(self._gap(1))
        self._follow_fence(text)
        return closing + gap + self._write(self._quoted(text))

    def new_paragraph(self) -> str:
        """Return the line breaks between the text so far and the next text; none at the very beginning."""
        return self.finish() + self._write(self._gap(2))

    def leave_a_line(self) -> str:
        """End the line, because the host may add one. The next text begins on another line."""
        before = self.finish() + self._write(self._gap(1))
        self._after_host = True
        return before

    def close_thought(self) -> str:
        """Return the end of an open thought, without ending an answer that has begun."""
        if self._in_thought:
            return self._end_piece()
        return ""

    def finish(self) -> str:
        """Return the rest of the thought or answer, and the remarks that are not written yet."""
        last = ""
        if self._remarks:
            last = self._remarks.pop()
        return self._end_piece() + (self.thought(last) + self._end_piece() if last else "")

    def broken_off(self, line: str) -> str:
        """Return the end of a text that a failure interrupts: the line, outside of any code block. "" without text."""
        end = self.finish()
        if not self._end:
            return end
        fence = fence_after(self._line, self._fence)
        if fence:
            end += self._write(f"{self._gap(1)}{fence}")
        return end + self.new_paragraph() + self.answer(line) + self.finish()

    def _follow_fence(self, text: str) -> None:
        """Process a piece of the answer to know whether it ends in a code block."""
        *ended, last = text.split("\n")
        for line in ended:
            self._fence = fence_after((self._line + line)[:_MAX_FENCE_LINE], self._fence)
            self._line = ""
        self._line = (self._line + last)[:_MAX_FENCE_LINE]

    def _end_piece(self) -> str:
        rest = self._waiting
        self._waiting = ""
        closing = ""
        if self._in_thought:
            closing = "\n</think>\n"
        self._in_thought = False
        return self._write(_NAMED.sub(f"<{_JOINER}", rest) + closing)

    def _quoted(self, text: str) -> str:
        """Return a piece without tags, whatever follows the tag's name: hosts accept different attributes."""
        text = self._waiting + text
        settled = len(text) - _length_at_end(_WRITING_WAITS, text)
        self._waiting = text[settled:]
        return _NAMED.sub(f"<{_JOINER}", text[:settled])

    def _gap(self, newlines: int) -> str:
        if self._after_host:
            return "\n" * (newlines if self._end else 1)
        there = len(self._end) - len(self._end.rstrip("\n"))
        if self._end:
            return "\n" * max(0, newlines - there)
        return ""

    def _write(self, text: str) -> str:
        self._end = (self._end + text[-2:])[-2:]
        self._after_host = self._after_host and not text
        return text


_ESCAPED = "<!--dify-deepseek-reasoning-->"  # starts thoughts in HTML: docs/model-facts.md, "Escaped thoughts"
_ESCAPE_WAITS = re.compile(rf"(?:&[a-z]{{0,3}}|{_beginning(_ESCAPED)})\Z|\Z")


class PlainThoughts:
    """Converts the thoughts of one turn to plain text, without the marks and escapes of escaped thoughts."""

    _waiting = ""
    _is_escaped: bool | None = None

    def feed(self, text: str) -> str:
        """Process a piece and return the settled text. At the end, only a truncated thought has unsettled text."""
        text = self._waiting + text
        if self._is_escaped is None and not _ESCAPED.startswith(text.lstrip()):
            self._is_escaped = text.lstrip().startswith(_ESCAPED)
        self._waiting = ""
        if self._is_escaped is False:
            return text
        self._waiting = text
        if self._is_escaped:
            self._waiting = _ESCAPE_WAITS.findall(text)[0]
        return unescape(text.removesuffix(self._waiting).replace(_ESCAPED, ""))


class PieceKind(StrEnum):
    TEXT = "text"
    THOUGHT = "thought"
    WAS_THOUGHT = "was thought"
    """A piece without text, which says that all visible text before it was a thought."""


@dataclass(frozen=True)
class Piece:
    kind: PieceKind
    text: str


class ThoughtSplitter:
    """Splits the text of one turn while it streams. Pass chunks to ``feed``, then call ``finish`` once.

    docs/thoughts.md says when a tag counts. Only undecided text is held back: a possible tag, a thought in the middle
    of the turn until it is closed, and the text after a closing tag that leaves a level open.
    """

    def __init__(self, tags: tuple[str, ...] = ()) -> None:
        """Create a splitter. ``tags`` are an opening and a closing tag that may also enclose a thought."""
        self._mark, self._may_be_tag = _patterns(tags)
        self._waiting = ""
        self._levels = 0  # number of open thoughts
        self._tag = ""  # the tag that opened a thought in the middle of the turn; it counts only if it is closed
        self._held: list[str] | None = None  # text that may not belong to the thought; None if all of it does
        self._is_behind_thought = True  # also at the beginning of the turn; white space may lie between
        self._line = ""  # the beginning of the line, outside of thoughts
        self._fence = ""  # the marks that opened the code block
        self._pieces: list[Piece] = []

    def feed(self, chunk: str) -> list[Piece]:
        """Process a chunk and return the settled pieces in order."""
        for start in in_turns(range(0, len(chunk), MAX_STEP_LENGTH)):
            text = self._waiting + chunk[start : start + MAX_STEP_LENGTH]
            tag = self._may_be_tag.search(text, max(0, len(text) - _MAX_TAG_END))
            settled = len(text)
            if tag:
                settled = tag.start()
            self._waiting = text[settled:]
            self._read(text, settled)
        return self._taken()

    def finish(self, *, calls_follow: bool, is_cut: bool = False) -> list[Piece]:
        """Process the end of the turn, which may have tool calls and may be truncated; return the rest."""
        self._read(self._waiting, len(self._waiting))
        if self._held is not None:
            words = "".join(self._held)
            if is_cut or (self._tag and calls_follow):
                self._add(PieceKind.THOUGHT, words)
            else:
                self._add(PieceKind.THOUGHT, "" if self._tag else "\n")
                self._add(PieceKind.TEXT, self._tag + words)
        return self._taken()

    def _read(self, text: str, settled: int) -> None:
        """Process ``settled`` characters of a text. The rest waits for the next chunk."""
        start = 0
        for mark in self._mark.finditer(text, 0, settled):
            self._take(text[start : mark.start()])
            if mark[0][0] == "\n":
                self._take(mark[0])
            else:
                closes = bool(mark["closes"] or mark["closing"])
                self._take_tag(mark[0], closes=closes, ends_line=bool(_LINE_END.match(text, mark.end())))
            start = mark.end()
        self._take(text[start:settled])

    def _take(self, words: str) -> None:
        """Process text without a tag that counts. Line ends arrive separately."""
        if self._levels:
            self._think(words)
            return
        self._add(PieceKind.TEXT, words)
        self._is_behind_thought = self._is_behind_thought and not words.strip()
        if words.startswith("\n"):
            self._fence = fence_after(self._line, self._fence)
            self._line = ""
        else:
            self._line = (self._line + words)[:_MAX_FENCE_LINE]

    def _take_tag(self, tag: str, *, closes: bool, ends_line: bool) -> None:
        if self._levels and closes:
            self._close_level()
        elif self._levels:
            self._levels += 1
            if self._held is not None:
                self._held.append(tag)  # the tag may be a part of the answer
        elif closes and ends_line and not self._fence:
            self._add(PieceKind.WAS_THOUGHT, "")
            self._end_thought()
        elif not closes and not self._fence and (self._is_behind_thought or not self._line.strip()):
            self._levels = 1
            self._tag, self._held = ("", None) if self._is_behind_thought else (tag, [])
        else:
            self._take(tag)

    def _think(self, words: str) -> None:
        if self._held is None:
            self._add(PieceKind.THOUGHT, words)
        else:
            self._held.append(words)

    def _close_level(self) -> None:
        """Close one level. If another is still open, the next text belongs to the thought if a closing tag follows."""
        self._add(PieceKind.THOUGHT, "".join(self._held or ()))
        self._levels -= 1
        self._tag = ""
        self._held = []
        if not self._levels:
            self._end_thought()

    def _end_thought(self) -> None:
        self._add(PieceKind.THOUGHT, "\n")  # separates the thought from the next one
        self._held = None
        self._is_behind_thought = True
        self._line = ""
        self._fence = ""

    def _add(self, kind: PieceKind, text: str) -> None:
        if text or kind is PieceKind.WAS_THOUGHT:
            self._pieces.append(Piece(kind, text))

    def _taken(self) -> list[Piece]:
        """Remove and return the settled pieces. Consecutive pieces of the same kind are merged."""
        pieces = self._pieces
        self._pieces = []
        if not pieces[1:]:  # most chunks have one piece or none
            return pieces
        groups = groupby(in_turns(pieces), attrgetter("kind"))
        return [Piece(kind, "".join(piece.text for piece in group)) for kind, group in groups]


def fence_after(line: str, fence: str) -> str:
    """Return the fence of the code block that is open after a line; ``fence`` was open before it, and "" means none."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if fence:
        if found["run"].startswith(fence) and not found["info"].strip():
            return ""
        return fence
    if found["run"][0] == "`" and "`" in found["info"]:
        return ""
    return found["run"]


def open_fence(text: str) -> str:
    """Return the fence that closes the code block in which a text ends; "" if it does not end in one."""
    fence = ""
    for line in in_turns(text.split("\n")):
        fence = fence_after(line, fence)
    return fence


def without_was_thought(pieces: Iterable[Piece]) -> list[Piece]:
    """Return only pieces of text and thoughts. Text before a WAS_THOUGHT becomes a thought."""
    settled: list[Piece] = []
    for piece in in_turns(pieces):
        if piece.kind is PieceKind.WAS_THOUGHT:
            settled = [Piece(PieceKind.THOUGHT, "".join(each.text for each in settled))]
        else:
            settled.append(piece)
    return settled


def without_thoughts(text: str, tags: tuple[str, ...] = ()) -> str:
    """Return the visible text of an earlier answer, without blank lines around thoughts. Quoted tags are restored."""
    if "<" not in text and not tags:
        return text
    splitter = ThoughtSplitter(tags)
    pieces = without_was_thought([*splitter.feed(text), *splitter.finish(calls_follow=False)])
    visible = _QUOTED.sub("<", "".join(piece.text for piece in pieces if piece.kind is PieceKind.TEXT))
    if any(piece.kind is PieceKind.THOUGHT for piece in pieces):
        return visible.strip()
    return visible
