"""Thoughts and visible text, told apart while they stream.

In: a model's text in chunks cut anywhere. Out: pieces of text and of thought, the same whatever the cuts. A closed
``<think>…</think>`` outside code is a thought; an unclosed one only at the start, after a block, when tool calls follow
or when the turn was cut. Tags inside a thought count as levels. Text that merely quotes a tag keeps its words.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from internal.text.fairness import in_turns
from internal.thoughts.markdown_code import CodeReader
from internal.thoughts.markdown_tokens import Kind, Token, Tokens, is_tag
from internal.thoughts.think_tags import has_tag, unquoted
from internal.thoughts.thought_levels import Thought

MAX_STEP_LENGTH = 16 * 1024
"""Characters to feed at once, so that no step takes long."""


class PieceKind(StrEnum):
    TEXT = "text"
    THOUGHT = "thought"
    WAS_THOUGHT = "was thought"
    """Without text: all visible text before it was a thought, whose beginning the model's template had left out."""


@dataclass(frozen=True)
class Piece:
    kind: PieceKind
    text: str


class ThoughtSplitter:
    """Splits one turn's text; ``feed`` it chunks, then ``finish`` it once.

    Kept back is only what cannot be judged yet: the beginning of a tag, a tag that may stand in code, a ``<think>`` in
    the middle of text until its end is seen, and what follows a closing tag inside nested ones.
    """

    def __init__(self) -> None:
        self._tokens, self._code = Tokens(), CodeReader()
        self._may_open_unclosed = True  # at the start of the turn or after a block
        self._opened: list[Token] | None = None  # a <think> in the middle of text, and what followed it
        self._thought: Thought | None = None
        self._pieces: list[Piece] = []
        self._kind, self._said = PieceKind.TEXT, list[str]()  # the last piece, which may go on

    def feed(self, chunk: str) -> list[Piece]:
        """Take a chunk and return what is certain by now, in order."""
        self._read(self._tokens.feed(chunk))
        return self._take_pieces()

    def finish(self, *, calls_follow: bool, is_cut: bool = False) -> list[Piece]:
        """Say that the turn has ended, whether tool calls came with it and whether it is whole; return the rest."""
        self._read(self._tokens.finish())
        self._finish_code()
        if self._thought and self._thought.after_close is not None:
            self._end_open_levels(self._thought, self._thought.after_close, is_cut=is_cut)
        if self._opened is not None:
            kind = PieceKind.THOUGHT if calls_follow or is_cut else PieceKind.TEXT
            tokens = self._opened[1:] if kind is PieceKind.THOUGHT else self._opened
            self._say(kind, "".join(token.text for token in tokens))
        return self._take_pieces()

    def _end_open_levels(self, thought: Thought, after_close: list[Token], *, is_cut: bool) -> None:
        """The last closing tag closed the thought; in a cut turn those that are missing may have been cut off."""
        if is_cut:
            self._say(PieceKind.THOUGHT, thought.rest())
            return
        self._end_thought()
        self._read(after_close)
        self._finish_code()

    def _read(self, tokens: Iterable[Token]) -> None:
        for token in self._code.read(in_turns(tokens)):
            self._take(token)

    def _finish_code(self) -> None:
        for token in in_turns(self._code.finish()):
            self._take(token)

    def _take(self, token: Token) -> None:
        if self._thought:
            self._think(self._thought, token)
        elif self._opened is not None:
            self._opened.append(token)
            if token.kind is Kind.CLOSE:
                opened, self._opened = self._opened, None
                self._open_thought(opened[1:])
        elif not is_tag(token):
            self._may_open_unclosed = self._may_open_unclosed and not token.text.strip()
            self._say(PieceKind.TEXT, token.text)
        elif token.kind is Kind.CLOSE:
            self._say(PieceKind.WAS_THOUGHT, "")
            self._may_open_unclosed = True
            self._code.begin_anew()
        else:
            self._code.switch_off()
            if self._may_open_unclosed:
                self._open_thought(())
            else:
                self._opened = [token]

    def _open_thought(self, tokens: Iterable[Token]) -> None:
        self._thought = thought = Thought()
        for token in tokens:
            self._think(thought, token)

    def _think(self, thought: Thought, token: Token) -> None:
        words, has_ended = thought.take(token)
        self._say(PieceKind.THOUGHT, words)
        if has_ended:
            self._end_thought()

    def _end_thought(self) -> None:
        self._say(PieceKind.THOUGHT, "\n")  # apart from the next block, should one follow
        self._thought, self._may_open_unclosed = None, True
        self._code.begin_anew()

    def _say(self, kind: PieceKind, text: str) -> None:
        if kind is not self._kind:
            self._end_piece()
            self._kind = kind
        if text:
            self._said.append(text)

    def _end_piece(self) -> None:
        if self._said or self._kind is PieceKind.WAS_THOUGHT:
            self._pieces.append(Piece(self._kind, "".join(self._said)))
            self._said = []

    def _take_pieces(self) -> list[Piece]:
        self._end_piece()
        pieces, self._pieces, self._kind = self._pieces, [], PieceKind.TEXT
        return pieces


def split_thoughts(text: str, *, calls_follow: bool = False, is_cut: bool = False) -> list[Piece]:
    """Split a text that is there as a whole, into texts and thoughts alone."""
    splitter = ThoughtSplitter()
    return settled(splitter.feed(text) + splitter.finish(calls_follow=calls_follow, is_cut=is_cut))


def settled(pieces: list[Piece]) -> list[Piece]:
    """All pieces of a turn, with what was a thought as one."""
    last = max((at for at, piece in enumerate(pieces) if piece.kind is PieceKind.WAS_THOUGHT), default=0)
    before = [Piece(PieceKind.THOUGHT, piece.text) for piece in pieces[:last] if piece.text]
    return before + [piece for piece in pieces[last:] if piece.kind is not PieceKind.WAS_THOUGHT]


def without_thoughts(text: str) -> str:
    """The visible text of an earlier answer, without the blank lines that thoughts leave around it.

    Quoted tags are as the model had written them.
    """
    if not has_tag(text):
        return unquoted(text)
    visible: list[str] = []
    has_thoughts = False
    for piece in _pieces_of(text):
        if piece.kind is PieceKind.WAS_THOUGHT:
            visible.clear()
        if piece.kind is PieceKind.TEXT:
            visible.append(piece.text)
        else:
            has_thoughts = True
    whole = "".join(visible)
    return unquoted(whole.strip() if has_thoughts else whole)


def _pieces_of(text: str) -> Iterator[Piece]:
    splitter = ThoughtSplitter()
    for start in in_turns(range(0, len(text), MAX_STEP_LENGTH)):
        yield from splitter.feed(text[start : start + MAX_STEP_LENGTH])
    yield from splitter.finish(calls_follow=False)
