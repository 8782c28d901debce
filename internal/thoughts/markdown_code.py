"""Finds tags in Markdown code, which are text and not tags.

In: tokens of a text. Out: the same, but that a tag in code has become text. Code is a fenced block, or what stands
between two equal runs of backticks in one paragraph (CommonMark 4.5 and 6.1).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from internal.thoughts.markdown_tokens import Kind, Token, is_tag

_MIN_FENCE_LENGTH = 3
_MAX_INDENT = 3
"""Spaces before a fence; with four the line is indented code."""


@dataclass
class _Fence:
    """A fenced block that has begun."""

    run: str
    """The marks that opened it."""
    is_opening_line: bool = True
    may_close: bool = False
    """Whether the line so far would close it."""


class CodeReader:
    """Reads one text. The caller switches the reading off for as long as a thought lasts.

    A tag after a run of backticks waits until that run is closed or its paragraph ends. Then the paragraph is read a
    second time; the number of runs of each length that are left is known by then, so nothing waits in it again.
    """

    def __init__(self) -> None:
        self._is_on = True
        self._fence: _Fence | None = None
        self._code = 0  # length of the run that opened the inline code we may be in
        self._runs: list[int] = []  # the other runs since then
        self._waiting: list[Token] | None = None
        self._indent: int | None = 0  # spaces since the line began; None once anything else stood on it
        self._is_blank = True  # the line, so far
        self._place_before: tuple[int | None, bool] = (0, True)  # where the first waiting token stands
        self._left: Counter[int] | None = None  # runs in the rest of the paragraph, by length; None while unknown

    def switch_off(self) -> None:
        """Pass on what follows unread, because it belongs to a thought."""
        self._is_on = False

    def start_over(self) -> None:
        """Read what follows again; it begins a line outside of code."""
        self._is_on, self._fence, self._code, self._runs = True, None, 0, []
        self._begin_line()

    def read(self, tokens: Iterable[Token]) -> Iterator[Token]:
        for token in tokens:
            yield from self._read(token)

    def finish(self) -> Iterator[Token]:
        """Take the end of the text, which ends its last paragraph too."""
        if self._waiting is not None:
            yield from self._read_paragraph_again(self._waiting)

    def _read(self, token: Token) -> Iterable[Token]:
        if self._waiting is not None:
            return self._wait(token, self._waiting)
        if not self._is_on:
            return (token,)
        if self._fence:
            self._pass_fenced(token, self._fence)
            return (_as_words(token),)
        if not is_tag(token):
            self._pass(token)
            return (token,)
        if not self._code:
            return (token,)
        if self._left is None:
            self._waiting, self._place_before = [token], (self._indent, self._is_blank)
            self._move(token)
            return ()
        self._move(token)
        return (_as_words(token),)

    def _wait(self, token: Token, waiting: list[Token]) -> Iterable[Token]:
        """Look for the end of the code that a tag may stand in."""
        waiting.append(token)
        opens_block = self._opens_block(token)
        if opens_block or (token.kind is Kind.LINE_END and self._is_blank):
            return self._read_paragraph_again(waiting)
        self._move(token)
        if token.kind is not Kind.BACKTICKS or len(token.text) != self._code:
            return ()
        self._waiting, self._code, self._runs = None, 0, []
        return (Token(Kind.TEXT, "".join(passed.text for passed in waiting)),)

    def _read_paragraph_again(self, tokens: Sequence[Token]) -> Iterator[Token]:
        """Take the run that seemed to open code for text, and judge the runs after it without it."""
        self._waiting, self._code, runs, self._runs = None, 0, self._runs, []
        self._indent, self._is_blank = self._place_before
        left = Counter([*runs, *(len(token.text) for token in tokens if token.kind is Kind.BACKTICKS)])
        self._left = left
        for run in runs:
            left[run] -= 1
            self._pass_run(run)
        for token in tokens:
            if token.kind is Kind.BACKTICKS:
                left[len(token.text)] -= 1
            yield from self._read(token)
        self._left = None

    def _pass(self, token: Token) -> None:
        if self._opens_block(token):
            self._fence, self._code, self._runs = _Fence(token.text), 0, []
        elif token.kind is Kind.BACKTICKS:
            self._pass_run(len(token.text))
        elif token.kind is Kind.LINE_END and self._is_blank:
            self._code, self._runs = 0, []
        self._move(token)

    def _pass_run(self, length: int) -> None:
        if not self._code:
            self._code = length if self._left is None or self._left[length] > 0 else 0
        elif length == self._code:
            self._code, self._runs = 0, []
        elif self._left is None:
            self._runs.append(length)

    def _pass_fenced(self, token: Token, fence: _Fence) -> None:
        if token.kind is Kind.LINE_END:
            if fence.may_close:
                self._fence = None
            fence.is_opening_line = fence.may_close = False
        elif fence.is_opening_line and token.kind is Kind.BACKTICKS and fence.run[0] == "`":
            self._fence = None  # not a block: those have no backticks in their first line
            self._pass_run(len(fence.run))
            self._pass_run(len(token.text))
        elif not fence.is_opening_line and self._opens_block(token) and token.text.startswith(fence.run):
            fence.may_close = True
        elif token.text.strip():
            fence.may_close = False
        self._move(token)

    def _opens_block(self, token: Token) -> bool:
        return (
            len(token.text) >= _MIN_FENCE_LENGTH
            and (token.kind is Kind.BACKTICKS or token.kind is Kind.TILDES)
            and self._indent is not None
            and self._indent <= _MAX_INDENT
        )

    def _begin_line(self) -> None:
        self._indent, self._is_blank = 0, True

    def _move(self, token: Token) -> None:
        """Remember where in its line the token ends."""
        if token.kind is Kind.LINE_END:
            self._begin_line()
            return
        if token.text.strip(" "):
            self._indent = None
        elif self._indent is not None:
            self._indent += len(token.text)
        self._is_blank = self._is_blank and not token.text.strip()


def _as_words(token: Token) -> Token:
    return Token(Kind.TEXT, token.text) if is_tag(token) else token
