"""A streamed text as tokens: tags of thoughts, marks of Markdown's code, line ends, and the text between.

In: chunks cut anywhere. Out: the same marks whatever the cuts; text between them may come in pieces. Every character is
looked at a bounded number of times.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from internal.thoughts.think_tags import Tags


class Kind(StrEnum):
    TEXT = "text"
    OPEN = "open"
    CLOSE = "close"
    BACKTICKS = "backticks"
    TILDES = "tildes"
    LINE_END = "line end"


class Token(NamedTuple):
    kind: Kind
    text: str


def is_tag(token: Token) -> bool:
    return token.kind is Kind.OPEN or token.kind is Kind.CLOSE


_RUNS = {"`": Kind.BACKTICKS, "~": Kind.TILDES}
_FREQUENT = {"\n": Token(Kind.LINE_END, "\n"), "`": Token(Kind.BACKTICKS, "`"), "```": Token(Kind.BACKTICKS, "```")}


class Tokens:
    """Cuts one text into tokens; a possible beginning of a tag, or a run of one mark, waits for more."""

    def __init__(self, tags: Tags) -> None:
        self._tags, self._marks = tags, _marks(tags)
        self._tag_beginning = ""
        self._mark, self._run = "", 0  # a run as its mark and its length: it may have any length

    def feed(self, chunk: str) -> Iterator[Token]:
        if self._mark and chunk:
            rest = chunk.lstrip(self._mark)
            self._run += len(chunk) - len(rest)
            chunk = rest
            if chunk:
                yield from self._end_run()
        chunk = self._tag_beginning + chunk
        certain = len(chunk) - self._tags.beginning_at_end(chunk)
        chunk, self._tag_beginning = chunk[:certain], chunk[certain:]
        if chunk and not self._tag_beginning and chunk[-1] in _RUNS:
            self._mark = chunk[-1]
            before = chunk.rstrip(self._mark)
            self._run, chunk = len(chunk) - len(before), before
        yield from _tokens(chunk, self._marks)

    def finish(self) -> Iterator[Token]:
        yield from self._end_run()
        yield from _tokens(self._tag_beginning, self._marks)
        self._tag_beginning = ""

    def _end_run(self) -> Iterator[Token]:
        if self._mark:
            yield Token(_RUNS[self._mark], self._mark * self._run)
            self._mark, self._run = "", 0


@cache
def _marks(tags: Tags) -> re.Pattern[str]:
    return re.compile(rf"{tags.pattern}|`+|~+|\n", re.IGNORECASE)


def _tokens(text: str, marks: re.Pattern[str]) -> Iterator[Token]:
    start = 0
    for mark in marks.finditer(text):
        begin, end = mark.span()
        if begin > start:
            yield Token(Kind.TEXT, text[start:begin])
        yield _FREQUENT.get(mark[0]) or Token(_kind(mark[0]), mark[0])
        start = end
    if start < len(text):
        yield Token(Kind.TEXT, text[start:])


def _kind(mark: str) -> Kind:
    if mark[0] == "<":
        return Kind.CLOSE if mark[1] == "/" else Kind.OPEN
    return _RUNS[mark[0]]
