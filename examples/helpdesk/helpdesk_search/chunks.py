"""Documents cut into chunks.

In: a document. Out: overlapping chunks of at most 300 characters, each with its page and headings. A chunk ends at the
last paragraph border within its size, else at the end of a sentence, else at a blank, else at its full size. No chunk
crosses a page, so that its page number is exact.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from .manual import Document

CHUNK_SIZE = 300
OVERLAP = 20

# A heading belongs to the paragraph below it: alone, it would be found without its answer.
_PARAGRAPH = re.compile(r"^(?!#).*\S.*\n(?:[^\S\n]*\n)+", re.MULTILINE)
_SENTENCE = re.compile(r"[。！？]|[.!?](?=\s)|\n")
_BLANK = re.compile(r"\s")
_HEADING = re.compile(r"^(#+)[ \t]+(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Chunk:
    """A part of one page: `text` begins at `start` in the page's text, below the headings of `heading`."""

    page: int
    heading: str
    start: int
    text: str


def chunk_spans(text: str, size: int = CHUNK_SIZE, overlap: int = OVERLAP) -> list[tuple[int, int]]:
    """Spans that cover the text: each begins `overlap` characters before the end of the one before it."""
    borders = [[match.end() for match in kind.finditer(text)] for kind in (_PARAGRAPH, _SENTENCE, _BLANK)]
    spans: list[tuple[int, int]] = []
    start = covered = 0
    while covered < len(text):
        full = start + size
        end = len(text) if full >= len(text) else _last_border(borders, after=covered, upto=full)
        spans.append((start, end))
        start = max(end - overlap, 0)
        covered = end
    return spans


def _last_border(borders: list[list[int]], *, after: int, upto: int) -> int:
    for positions in borders:
        reached = bisect_right(positions, upto)
        if reached and positions[reached - 1] > after:
            return positions[reached - 1]
    return upto


def chunk_document(document: Document) -> Iterator[Chunk]:
    """The document's chunks in reading order; a heading applies beyond the end of its page."""
    path: tuple[str, ...] = ()
    for page in document.pages:
        headings = list(_HEADING.finditer(page.text))
        covered = 0
        for start, end in chunk_spans(page.text):
            while headings and headings[0].start() <= covered:
                path = _descend(path, headings.pop(0))
            yield Chunk(page.number, " › ".join(filter(None, path[1:])) or document.title, start, page.text[start:end])
            covered = end
        for heading in headings:
            path = _descend(path, heading)


def _descend(path: tuple[str, ...], heading: re.Match[str]) -> tuple[str, ...]:
    """The headings that apply below this one, outermost first; the first is the title."""
    above = len(heading[1]) - 1
    return (*path[:above], *[""] * (above - len(path)), heading[2].strip())
