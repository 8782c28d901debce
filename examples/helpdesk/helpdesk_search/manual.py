"""The manual: a folder of `LANGUAGE/*.md` and `LANGUAGE/*.pdf` → documents of numbered pages.

In Markdown a page begins at a line `<!-- page 3 -->`; text before the first mark is page 1. A PDF with the name of a
Markdown file is the same guide in print and left out, so that no passage is found twice.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from .errors import TextsError
from .pdf import read_pdf

LANGUAGES = ("ja", "en")

_PAGE_MARK = re.compile(r"^<!-- page (\d+) -->[ \t]*$", re.MULTILINE)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """One page of a document, in the manual's own spelling."""

    number: int
    text: str


@dataclass(frozen=True)
class Document:
    """One file of the manual; `file` is the path inside the manual's folder, which readers see."""

    language: str
    file: str
    title: str
    pages: tuple[Page, ...]


def manual_files(folder: Path) -> list[Path]:
    """The manual's files in the order in which they are indexed."""
    files = [file for language in LANGUAGES for file in _guides(folder / language)]
    if not files:
        languages = " nor ".join(f"{language}/*.md" for language in LANGUAGES)
        raise TextsError(f"The manual is missing: its folder '{folder.name}' contains neither {languages}.")
    return files


def _guides(folder: Path) -> list[Path]:
    written = sorted(folder.glob("*.md"))
    stems = {file.stem for file in written}
    return [*written, *(file for file in sorted(folder.glob("*.pdf")) if file.stem not in stems)]


def read_manual(folder: Path) -> list[Document]:
    return [read_document(file, folder) for file in manual_files(folder)]


def read_document(file: Path, folder: Path) -> Document:
    name = file.relative_to(folder).as_posix()
    if file.suffix == ".pdf":
        printed = read_pdf(file, name)
        pages = tuple(Page(number, text) for number, text in enumerate(printed.pages, start=1) if text)
        return Document(file.parent.name, name, printed.title or file.stem, pages)
    try:
        text = file.read_text(encoding="utf-8-sig")  # some editors put a byte order mark first
    except UnicodeDecodeError as error:
        raise TextsError(f"{name}: byte {error.start} is not UTF-8; save the file as UTF-8.") from error
    title = _TITLE.search(text)
    return Document(
        language=file.parent.name,
        file=name,
        title=title[1].strip() if title else file.stem,
        pages=split_pages(text, name),
    )


def split_pages(text: str, name: str) -> tuple[Page, ...]:
    """Cut a file at its page marks; the numbers must grow, because citations name them."""
    front, *marked = _PAGE_MARK.split(text)
    pages = [Page(1, front.strip())] if front.strip() else []
    for number, page_text in zip(marked[::2], marked[1::2], strict=True):
        if pages and int(number) <= pages[-1].number:
            raise TextsError(f"{name}: page {number} follows page {pages[-1].number}; page numbers must grow.")
        pages.append(Page(int(number), page_text.strip()))
    return tuple(pages)
