"""Thoughts and visible text, told apart while they stream.

In: a model's text in chunks cut anywhere. Out: pieces of text and of thought, the same whatever the cuts. A closed
``<think>…</think>`` outside code is a thought; an unclosed one only at the start, after a block, when tool calls follow
or when the turn was cut. Tags inside a thought count as levels. Text that merely quotes a tag keeps its words.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from internal.markdown_code import CodeReader
from internal.markdown_tokens import Kind, Token, Tokens, is_tag
from internal.think_tags import has_tag, unquoted

_TOKENS_AT_A_TIME = 2_000
"""Some milliseconds of work."""


class PieceKind(StrEnum):
    TEXT = "text"
    THOUGHT = "thought"
    WAS_THOUGHT = "was thought"
    """Without text: all visible text before it was a thought, whose beginning the model's template had left out."""


@dataclass(frozen=True)
class Piece:
    kind: PieceKind
    text: str


class _Thought:
    """A thought whose end is not certain yet.

    After a closing tag that leaves a level open, what follows is this thought's if another closing tag comes, and
    otherwise it is the answer; it is kept until that is known.
    """

    def __init__(self) -> None:
        self._levels: list[bool] = []  # of the tags inside: whether each is among words, and so one of the words
        self._follows_tag = True
        self.after_close: list[Token] | None = None
        self._words_after_close: list[str] = []

    def take(self, token: Token) -> tuple[str, bool]:
        """What is certainly a thought by now, and whether the thought has ended."""
        if token.kind is Kind.CLOSE:
            return self._close(token.text)
        is_word = True
        if token.kind is Kind.OPEN:
            is_word = not self._follows_tag
            self._levels.append(is_word)
        self._follows_tag = token.kind is Kind.OPEN or (self._follows_tag and token.text.isspace())
        words = token.text if is_word else ""
        if self.after_close is None:
            return words, False
        self.after_close.append(token)
        self._words_after_close.append(words)
        return "", False

    def _close(self, tag: str) -> tuple[str, bool]:
        words = self.rest()
        if not self._levels:
            return words, True
        self._words_after_close = [tag] if self._levels.pop() else []
        self.after_close, self._follows_tag = [], True
        return words, False

    def rest(self) -> str:
        """What was kept, as a part of the thought."""
        return "".join(self._words_after_close)


class ThoughtSplitter:
    """Splits one turn's text; ``feed`` it chunks, then ``finish`` it once.

    Kept back is only what cannot be judged yet: the beginning of a tag, a tag that may stand in code, a ``<think>`` in
    the middle of text until its end is seen, and what follows a closing tag inside nested ones.
    """

    def __init__(self, give_way: Callable[[], None] = lambda: None) -> None:
        """``give_way`` is called during long work, to let others go on."""
        self._give_way = give_way
        self._tokens, self._code = Tokens(), CodeReader()
        self._may_open_unclosed = True  # at the start of the turn or after a block
        self._opened: list[Token] | None = None  # a <think> in the middle of text, and what followed it
        self._thought: _Thought | None = None
        self._said: list[tuple[PieceKind, str]] = []

    def feed(self, chunk: str) -> list[Piece]:
        """Take a chunk and return what is certain by now, in order."""
        self._read(self._tokens.feed(chunk))
        return self._pieces()

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
        return self._pieces()

    def _end_open_levels(self, thought: _Thought, after_close: list[Token], *, is_cut: bool) -> None:
        """The last closing tag closed the thought; in a cut turn those that are missing may have been cut off."""
        if is_cut:
            self._say(PieceKind.THOUGHT, thought.rest())
            return
        self._end_thought()
        self._read(after_close)
        self._finish_code()

    def _read(self, tokens: Iterable[Token]) -> None:
        for token in self._code.read(self._unhurried(tokens)):
            self._take(token)

    def _finish_code(self) -> None:
        for token in self._unhurried(self._code.finish()):
            self._take(token)

    def _unhurried(self, tokens: Iterable[Token]) -> Iterator[Token]:
        for number, token in enumerate(tokens, start=1):
            if number % _TOKENS_AT_A_TIME == 0:
                self._give_way()
            yield token

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
        self._thought = thought = _Thought()
        for token in tokens:
            self._think(thought, token)

    def _think(self, thought: _Thought, token: Token) -> None:
        words, has_ended = thought.take(token)
        self._say(PieceKind.THOUGHT, words)
        if has_ended:
            self._end_thought()

    def _end_thought(self) -> None:
        self._said.append((PieceKind.THOUGHT, "\n"))  # apart from the next block, should one follow
        self._thought, self._may_open_unclosed = None, True
        self._code.begin_anew()

    def _say(self, kind: PieceKind, text: str) -> None:
        if text or kind is PieceKind.WAS_THOUGHT:
            self._said.append((kind, text))

    def _pieces(self) -> list[Piece]:
        said, self._said = self._said, []
        return [Piece(kind, "".join(text for _, text in group)) for kind, group in groupby(said, lambda each: each[0])]


def split_thoughts(text: str, *, calls_follow: bool = False, is_cut: bool = False) -> list[Piece]:
    """Split a text that is there as a whole, into texts and thoughts alone."""
    splitter = ThoughtSplitter()
    return settled(splitter.feed(text) + splitter.finish(calls_follow=calls_follow, is_cut=is_cut))


def settled(pieces: list[Piece]) -> list[Piece]:
    """All pieces of a turn, with what was a thought as one."""
    last = max((at for at, piece in enumerate(pieces) if piece.kind is PieceKind.WAS_THOUGHT), default=0)
    before = [Piece(PieceKind.THOUGHT, piece.text) for piece in pieces[:last] if piece.text]
    return before + [piece for piece in pieces[last:] if piece.kind is not PieceKind.WAS_THOUGHT]


def without_thoughts(text: str, give_way: Callable[[], None] = lambda: None) -> str:
    """The visible text of an earlier answer, without the blank lines that thoughts leave around it.

    Quoted tags are as the model had written them.
    """
    if not has_tag(text):
        return unquoted(text)
    splitter = ThoughtSplitter(give_way)
    pieces = splitter.feed(text) + splitter.finish(calls_follow=False)
    visible = "".join(piece.text for piece in settled(pieces) if piece.kind is PieceKind.TEXT)
    return unquoted(visible if {piece.kind for piece in pieces} == {PieceKind.TEXT} else visible.strip())
