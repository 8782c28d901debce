"""Separates thoughts from visible text while both stream.

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
from internal.thoughts.think_tags import OF_MODELS, OURS, Tags, unquoted
from internal.thoughts.thought_levels import Thought

MAX_STEP_LENGTH = 16 * 1024
"""Characters to feed at once, so that no step takes long."""


class PieceKind(StrEnum):
    TEXT = "text"
    THOUGHT = "thought"
    WAS_THOUGHT = "was thought"
    """Without text: all visible text before it was a thought, whose opening tag the model's template had left out."""


@dataclass(frozen=True)
class Piece:
    kind: PieceKind
    text: str


@dataclass
class _InText:
    """We are outside of thoughts."""

    may_open_unclosed: bool
    """Whether a ``<think>`` opens a thought even if nothing closes it: so at the start of a turn or after a block."""


@dataclass(frozen=True)
class _AfterTag:
    """We are after a ``<think>`` in the middle of text, which is a thought if its closing tag comes."""

    tokens: list[Token]
    """The tag, and what has come since."""


class ThoughtSplitter:
    """Splits one turn's text; ``feed`` it chunks, then ``finish`` it once.

    Kept back is only what cannot be judged yet: the beginning of a tag, a tag that may stand in code, a ``<think>`` in
    the middle of text until its end is seen, and what follows a closing tag inside nested ones.
    """

    def __init__(self, tags: Tags = OF_MODELS) -> None:
        """The text has thoughts in these tags."""
        self._tokens, self._code = Tokens(tags), CodeReader()
        self._place: _InText | _AfterTag | Thought = _InText(may_open_unclosed=True)
        self._pieces = _Pieces()

    def feed(self, chunk: str) -> list[Piece]:
        """Take a chunk and return what is certain by now, in order."""
        self._read(self._tokens.feed(chunk))
        return self._pieces.take()

    def finish(self, *, calls_follow: bool, is_cut: bool = False) -> list[Piece]:
        """Take the end of the turn, with or without tool calls, whole or cut; return the rest."""
        self._read(self._tokens.finish())
        self._finish_code()
        if isinstance(self._place, Thought):
            self._end_open_levels(self._place, is_cut=is_cut)
        match self._place:
            case _AfterTag([_, *tokens]) if calls_follow or is_cut:
                self._pieces.add(PieceKind.THOUGHT, _joined(tokens))
            case _AfterTag(tokens):
                self._pieces.add(PieceKind.TEXT, _joined(tokens))
        return self._pieces.take()

    def _end_open_levels(self, thought: Thought, *, is_cut: bool) -> None:
        """The last closing tag closed the thought; in a cut turn those that are missing may have been cut off."""
        if thought.after_close is None:
            return
        if is_cut:
            self._pieces.add(PieceKind.THOUGHT, thought.rest())
            return
        self._end_thought()
        self._read(thought.after_close)
        self._finish_code()

    def _read(self, tokens: Iterable[Token]) -> None:
        for token in self._code.read(in_turns(tokens)):
            self._take(token)

    def _finish_code(self) -> None:
        for token in in_turns(self._code.finish()):
            self._take(token)

    def _take(self, token: Token) -> None:
        match self._place:
            case _InText() as place if is_tag(token):
                self._take_tag(token, place)
            case _InText() as place:
                place.may_open_unclosed = place.may_open_unclosed and not token.text.strip()
                self._pieces.add(PieceKind.TEXT, token.text)
            case _AfterTag(tokens):
                tokens.append(token)
                if token.kind is Kind.CLOSE:
                    self._begin_thought(tokens[1:])
            case Thought() as thought:
                self._think(thought, token)

    def _take_tag(self, token: Token, place: _InText) -> None:
        if token.kind is Kind.CLOSE:
            self._pieces.add(PieceKind.WAS_THOUGHT, "")
            self._end_thought()
            return
        self._code.switch_off()
        if place.may_open_unclosed:
            self._begin_thought(())
        else:
            self._place = _AfterTag([token])

    def _begin_thought(self, tokens: Iterable[Token]) -> None:
        self._place = thought = Thought()
        for token in tokens:
            self._think(thought, token)

    def _think(self, thought: Thought, token: Token) -> None:
        words, has_ended = thought.take(token)
        self._pieces.add(PieceKind.THOUGHT, words)
        if has_ended:
            self._end_thought()

    def _end_thought(self) -> None:
        self._pieces.add(PieceKind.THOUGHT, "\n")  # separates it from a next thought
        self._place = _InText(may_open_unclosed=True)
        self._code.start_over()


class _Pieces:
    """Pieces; neighbours of the same kind are joined."""

    def __init__(self) -> None:
        self._done: list[Piece] = []
        self._kind, self._words = PieceKind.TEXT, list[str]()

    def add(self, kind: PieceKind, text: str) -> None:
        if kind is not self._kind:
            self._end_piece()
            self._kind = kind
        if text:
            self._words.append(text)

    def take(self) -> list[Piece]:
        """Take out all pieces."""
        self._end_piece()
        pieces, self._done, self._kind = self._done, [], PieceKind.TEXT
        return pieces

    def _end_piece(self) -> None:
        if self._words or self._kind is PieceKind.WAS_THOUGHT:
            self._done.append(Piece(self._kind, "".join(self._words)))
            self._words = []


def settled(pieces: list[Piece]) -> list[Piece]:
    """Pieces of text and thought alone: text before a WAS_THOUGHT is a thought."""
    last = next((at for at in reversed(range(len(pieces))) if pieces[at].kind is PieceKind.WAS_THOUGHT), 0)
    before = [Piece(PieceKind.THOUGHT, piece.text) for piece in in_turns(pieces[:last]) if piece.text]
    return before + [piece for piece in in_turns(pieces[last:]) if piece.kind is not PieceKind.WAS_THOUGHT]


def without_thoughts(text: str) -> str:
    """The visible text of an earlier answer, without the blank lines that thoughts leave around it.

    Quoted tags are as the model had written them. Other tags of models had become ours before the answer was stored.
    """
    if not OURS.are_in(text):
        return unquoted(text)
    pieces = settled([piece for chunk in _steps(text) for piece in chunk])
    visible = unquoted("".join(piece.text for piece in pieces if piece.kind is PieceKind.TEXT))
    return visible.strip() if any(piece.kind is PieceKind.THOUGHT for piece in pieces) else visible


def _steps(text: str) -> Iterator[list[Piece]]:
    splitter = ThoughtSplitter(OURS)
    for start in in_turns(range(0, len(text), MAX_STEP_LENGTH)):
        yield splitter.feed(text[start : start + MAX_STEP_LENGTH])
    yield splitter.finish(calls_follow=False)


def _joined(tokens: Iterable[Token]) -> str:
    return "".join(token.text for token in tokens)
