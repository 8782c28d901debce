"""Splits a streamed answer into thoughts and speech, wherever chunk borders cut the tags.

In: text pieces as they come. Out: (is thought, text) spans; a tail that may become a tag waits. The tags themselves are
kept among the thoughts for a view without colours, where they alone show that a block is closed.
"""

import re
from collections.abc import Iterator

type Span = tuple[bool, str]
_TAG = re.compile(r"</?think>")
_TAGS = ("<think>", "</think>")


class ThoughtSpans:
    def __init__(self, *, keep_tags: bool = False) -> None:
        self._keep_tags = keep_tags
        self._thinking = False
        self._waiting = ""

    def feed(self, text: str) -> Iterator[Span]:
        text = self._waiting + text
        cut = len(text) - possible_tag(text)
        ready, self._waiting = text[:cut], text[cut:]
        start = 0
        for tag in _TAG.finditer(ready):
            yield from self._span(ready[start : tag.start()])
            self._thinking = tag.group() == "<think>"
            if self._keep_tags:
                yield True, tag.group()
            start = tag.end()
        yield from self._span(ready[start:])

    def finish(self) -> Iterator[Span]:
        yield from self._span(self._waiting)
        self._waiting = ""

    def _span(self, text: str) -> Iterator[Span]:
        if text:
            yield self._thinking, text


def possible_tag(text: str) -> int:
    """How many characters at the end may be the beginning of a tag."""
    start = text.rfind("<")
    tail = text[start:] if start >= 0 else ""
    return len(tail) if any(tag.startswith(tail) and tag != tail for tag in _TAGS) else 0
