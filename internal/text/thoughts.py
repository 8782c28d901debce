"""Thoughts and visible text: told apart where a model's text comes in, kept apart where the user's text goes out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from itertools import groupby
from operator import attrgetter

from internal.clock import in_turns

# The text that the user sees, with thoughts in ``<think>`` blocks that are always closed.
#
# Dify's page takes every such tag for a thought's, in code too, and an open block swallows what follows (docs/host-
# facts.md, "Thinking tags"). So a tag that an answer or a thought merely quotes is written with a word joiner after
# its ``<``: invisible, but not a tag any more.

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


# Separates thoughts from visible text while both stream.
#
# People write about tags, so what stands inside a sentence is text:
#
# - an opening tag counts where a turn or a line begins, or right behind another thought; never in a code fence; -
# inside a thought every tag counts, in levels, so that nested thoughts are hidden; - with none open, ``</think>``
# counts only at its line's end: what came before it in the turn was a thought, whose opening tag the model's template
# had left out.

MAX_STEP_LENGTH = 16 * 1024
"""Characters to feed at once, so that no step takes long."""
MAX_ATTRIBUTES_LENGTH = 100
"""Characters between a tag's name and its ``>``; anything longer is text."""
_MAX_BLANKS = 100
"""Characters between a closing tag and the end of its line."""
_MAX_FENCE_LINE = 200
"""Characters of a line that are looked at: it may be a code fence's."""

_ATTRIBUTES = rf"(?:\s[^<>]{{0,{MAX_ATTRIBUTES_LENGTH}}})?"
_REST = rf"{TAG_NAME}{_ATTRIBUTES}(?<!/)>"  # `<think/>` opens nothing
_BLANKS = rf"[ \t\r]{{0,{_MAX_BLANKS}}}"
_MARK = re.compile(rf"<(?P<closes>/?){_REST}|\n+", re.IGNORECASE)
_LINE_END = re.compile(rf"{_BLANKS}(?:\n|\Z)")
_READING_WAITS = re.compile(rf"(?:</?{beginning(TAG_NAME, _ATTRIBUTES)}|</{_REST}{_BLANKS})\Z", re.IGNORECASE)
"""What may become a tag with the next chunk, and a closing tag that may stand at its line's end."""
_FENCE = re.compile(r" {0,3}(?P<run>`{3,}|~{3,})(?P<info>.*)")


class PieceKind(StrEnum):
    TEXT = "text"
    THOUGHT = "thought"
    WAS_THOUGHT = "was thought"
    """Without text: all visible text before it was a thought."""


@dataclass(frozen=True)
class Piece:
    kind: PieceKind
    text: str


@dataclass
class _Thought:
    """A thought that has begun."""

    uncertain_tag: str = ""
    """Its opening tag if that stood at a line's beginning, amid the turn: then it is a thought only if it is closed."""
    levels: int = 0
    """Opening tags inside that were not closed."""
    held: list[str] | None = None
    """Words that are not certain to be a thought's; None while all are."""
    follows_tag: bool = True
    """An opening tag behind another is no word."""

    def __post_init__(self) -> None:
        self.held = [] if self.uncertain_tag else None


class ThoughtSplitter:
    """Splits one turn's text; ``feed`` it chunks, then ``finish`` it once.

    Kept back is only what cannot be judged yet: what may be a tag, a thought amid the turn until it is closed, and what
    follows a closing tag that leaves a level open.
    """

    def __init__(self) -> None:
        self._waiting = ""
        self._thought: _Thought | None = None
        self._is_behind_thought = True  # or where the turn begins; white space may stand between
        self._line = ""  # the beginning of the line, outside of thoughts
        self._fence = ""  # the marks that opened the code block
        self._pieces: list[Piece] = []

    def feed(self, chunk: str) -> list[Piece]:
        """Take a chunk and return what is certain by now, in order."""
        text = self._waiting + chunk
        certain = len(text) - length_at_end(_READING_WAITS, text)
        self._waiting = text[certain:]
        self._read(text, certain)
        return self._taken()

    def finish(self, *, calls_follow: bool, is_cut: bool = False) -> list[Piece]:
        """Take the end of the turn, with or without tool calls, whole or cut; return the rest."""
        self._read(self._waiting, len(self._waiting))
        thought = self._thought
        if thought and thought.held is not None:
            words, is_unclosed = "".join(thought.held), bool(thought.uncertain_tag)
            if is_cut or (is_unclosed and calls_follow):
                self._add(PieceKind.THOUGHT, words)
            else:
                self._add(PieceKind.THOUGHT, "" if is_unclosed else "\n")
                self._add(PieceKind.TEXT, thought.uncertain_tag + words)
        return self._taken()

    def _read(self, text: str, certain: int) -> None:
        """Read so many characters of a text, whose rest waits for the next chunk."""
        start = 0
        for mark in in_turns(_MARK.finditer(text, 0, certain)):
            self._take(text[start : mark.start()])
            if mark[0][0] == "\n":
                self._take(mark[0])
            else:
                ends_line = _LINE_END.match(text, mark.end()) is not None
                self._take_tag(mark[0], closes=bool(mark["closes"]), ends_line=ends_line)
            start = mark.end()
        self._take(text[start:certain])

    def _take(self, words: str) -> None:
        """Take words without a tag that counts; the ends of lines come alone."""
        if self._thought and words:
            self._thought.follows_tag = self._thought.follows_tag and words.isspace()
            self._think(self._thought, words)
            return
        self._add(PieceKind.TEXT, words)
        self._is_behind_thought = self._is_behind_thought and not words.strip()
        if words.startswith("\n"):
            self._fence, self._line = _fence_after(self._line, self._fence), ""
        else:
            self._line = (self._line + words)[:_MAX_FENCE_LINE]

    def _take_tag(self, tag: str, *, closes: bool, ends_line: bool) -> None:
        if self._thought and closes:
            self._close(self._thought)
        elif self._thought:
            self._think(self._thought, "" if self._thought.follows_tag else tag)
            self._thought.levels += 1
            self._thought.follows_tag = True
        elif closes and ends_line and not self._fence:
            self._add(PieceKind.WAS_THOUGHT, "")
            self._end_thought()
        elif not closes and not self._fence and (self._is_behind_thought or not self._line.strip()):
            self._thought = _Thought("" if self._is_behind_thought else tag)
        else:
            self._take(tag)

    def _think(self, thought: _Thought, words: str) -> None:
        if thought.held is None:
            self._add(PieceKind.THOUGHT, words)
        else:
            thought.held.append(words)

    def _close(self, thought: _Thought) -> None:
        """Close a level. While one is open, what follows is the thought's if another closing tag comes."""
        self._add(PieceKind.THOUGHT, "".join(thought.held or ()))
        if not thought.levels:
            self._end_thought()
            return
        thought.levels -= 1
        thought.uncertain_tag, thought.held, thought.follows_tag = "", [], True

    def _end_thought(self) -> None:
        self._add(PieceKind.THOUGHT, "\n")  # separates it from a next thought
        self._thought, self._is_behind_thought, self._line, self._fence = None, True, "", ""

    def _add(self, kind: PieceKind, text: str) -> None:
        if text or kind is PieceKind.WAS_THOUGHT:
            self._pieces.append(Piece(kind, text))

    def _taken(self) -> list[Piece]:
        """What is certain, taken out; neighbours of the same kind are one."""
        pieces, self._pieces = self._pieces, []
        groups = groupby(in_turns(pieces), attrgetter("kind"))
        return [Piece(kind, "".join(piece.text for piece in group)) for kind, group in groups]


def _fence_after(line: str, fence: str) -> str:
    """The marks of the code block that is open after a line, when these were open before it; "" for none."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if fence:
        return "" if found["run"].startswith(fence) and not found["info"].strip() else fence
    return "" if found["run"][0] == "`" and "`" in found["info"] else found["run"]


def open_fence(text: str) -> str:
    """The marks that close the code block in which a text ends; "" if it ends in none."""
    return reduce(lambda fence, line: _fence_after(line, fence), text.split("\n"), "")


def settled(pieces: list[Piece]) -> list[Piece]:
    """Pieces of text and thought alone: text before a WAS_THOUGHT is a thought."""
    last = next((at for at in reversed(range(len(pieces))) if pieces[at].kind is PieceKind.WAS_THOUGHT), 0)
    before = [Piece(PieceKind.THOUGHT, piece.text) for piece in in_turns(pieces[:last]) if piece.text]
    return before + [piece for piece in in_turns(pieces[last:]) if piece.kind is not PieceKind.WAS_THOUGHT]


def without_thoughts(text: str) -> str:
    """The visible text of an earlier answer, without the blank lines that thoughts leave around it.

    Quoted tags are as the model had written them.
    """
    pieces = settled([piece for chunk in _steps(text) for piece in chunk])
    visible = unquoted("".join(piece.text for piece in pieces if piece.kind is PieceKind.TEXT))
    return visible.strip() if any(piece.kind is PieceKind.THOUGHT for piece in pieces) else visible


def _steps(text: str) -> Iterator[list[Piece]]:
    splitter = ThoughtSplitter()
    for start in in_turns(range(0, len(text), MAX_STEP_LENGTH)):
        yield splitter.feed(text[start : start + MAX_STEP_LENGTH])
    yield splitter.finish(calls_follow=False)
