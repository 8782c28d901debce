"""PDF files, read into the same form as the Markdown files.

In: a PDF file. Out: its title and the text of each page. A PDF has lines, not paragraphs: lines are joined up to the
end of a sentence. Its bookmarks are the headings.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meaning.folding import fold
from pypdf import PdfReader
from pypdf.errors import DependencyError, PyPdfError

from .errors import TextsError

_SENTENCE_END = re.compile(r"[.!?:。！？：][\"')\]」』）]*$")
# In these scripts a line can break within a word.
_WIDE = frozenset({"W", "F"})

# What the library raises for a damaged file beside its own errors, and for a protected one whose cipher it lacks.
_UNREADABLE = (PyPdfError, DependencyError, OSError, ValueError, KeyError, TypeError, AttributeError, IndexError)


@dataclass(frozen=True)
class Printed:
    """The contents of a PDF: a text for each page, "" for a page without text."""

    title: str
    pages: tuple[str, ...]


def read_pdf(file: Path, name: str) -> Printed:
    try:
        reader = PdfReader(file)
        title = str((reader.metadata and reader.metadata.title) or "").strip()
        headings = _headings_by_page(reader, title)
        pages = tuple(
            page_as_markdown(page.extract_text().splitlines(), headings.get(number, ()))
            for number, page in enumerate(reader.pages)
        )
    except _UNREADABLE as error:
        raise TextsError(f"{name}: this PDF cannot be read ({error}); it may be damaged or protected.") from error
    if not any(pages):
        raise TextsError(f"{name}: this PDF contains no text; a scanned one needs text recognition first.")
    return Printed(title, pages)


def _headings_by_page(reader: PdfReader, title: str) -> dict[int, list[tuple[int, str]]]:
    found = {0: [(1, title)]}
    for level, bookmark in _bookmarks(reader.outline, level=2):  # level 1 is the document's title
        number = reader.get_destination_page_number(bookmark)
        if number is not None:
            found.setdefault(number, []).append((level, str(bookmark.title)))
    return found


def _bookmarks(outline: Iterable[Any], level: int) -> Iterator[tuple[int, Any]]:
    """The bookmarks with their levels; the library puts those below a bookmark into a list after it."""
    for entry in outline:
        if isinstance(entry, list):
            yield from _bookmarks(entry, level + 1)
        else:
            yield level, entry


def page_as_markdown(lines: Iterable[str], headings: Sequence[tuple[int, str]]) -> str:
    """Paragraphs with blank lines between them; a line that is one of the page's headings (level, text) is marked."""
    waiting = {fold(text): level for level, text in headings}
    paragraphs: list[str] = []
    goes_on = False
    for line in filter(None, (line.strip() for line in lines)):
        level = waiting.pop(fold(line), 0)  # only once: a line of the text may have the same words
        if level:
            paragraphs.append(f"{'#' * level} {line}")
        elif goes_on:
            paragraphs[-1] = _joined(paragraphs[-1], line)
        else:
            paragraphs.append(line)
        goes_on = not level and not _SENTENCE_END.search(line)
    return "\n\n".join(paragraphs)


def _joined(before: str, after: str) -> str:
    left = before[-1]
    right = after[0]
    wide = [unicodedata.east_asian_width(sign) in _WIDE for sign in (left, right)]
    within_word = all(wide) or (any(wide) and left.isalnum() and right.isalnum())
    if within_word:
        return f"{before}{after}"
    return f"{before} {after}"
