"""What the front end's data refers to, in words: files, the page and the branch; and an answer's citations of files.

A model reads a file in numbered lines, and cites one as `[order-form.csv:2 "napkins,40,pack"]`. What it cites is looked
up in the file: only words that stand there become an annotation.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

from pydantic import BaseModel, ConfigDict

MOST_OF_A_FILE = 20_000
MOST_OF_A_PAGE = 200_000
MOST_LINES_OF_A_PAGE = 100
"""Of the visible text, which a model reads."""
_BRANCHES = Path(__file__).with_name("branches.csv")
_NOT_IN_A_NAME = re.compile(r'[\[\]"\x00-\x1f]')
"""A citation could not be told from its file's name."""
_CITATION = re.compile(r'\[(?P<file>[^\[\]\n"]{1,200}):(?P<line>[0-9]{1,6}) "(?P<words>[^\n]{1,1000}?)"\]')


class FrontEndError(Exception):
    """The front end sent something that cannot be used; the sentence is for its user."""


class Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Attachment(Stored):
    """A reference to a file; its text is in the table `chat_files`."""

    file_id: int
    name: str


class FileAnnotation(Stored):
    """Words of a file that an answer rests on."""

    file_id: int
    file_name: str
    line: int
    """Counted from 1."""
    words: str


@dataclass(frozen=True)
class AttachedFile:
    reference: Attachment
    text: str

    @property
    def lines(self) -> list[str]:
        """As an editor counts them."""
        return [line.removesuffix("\n") for line in StringIO(self.text, newline=None)]


def text_in(path: Path, most: int) -> str:
    """Raises FrontEndError: the file is not a text, or has more than `most` characters."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except ValueError:
        raise FrontEndError(f"{path.name} is not a text in UTF-8.") from None
    if "\0" in text:
        raise FrontEndError(f"{path.name} is not a text: it contains the character U+0000.")
    if len(text) > most:
        raise FrontEndError(f"{path.name} has {len(text):,} characters; at most {most:,} are taken.")
    return text


def name_of(path: Path) -> str:
    return _NOT_IN_A_NAME.sub("_", path.name)


def branch_name(branch_org_id: str, customer_number: str) -> str:
    """Raises FrontEndError: the customer has no such branch."""
    with _BRANCHES.open(encoding="utf-8", newline="") as file:
        names = {(row["branch_org_id"], row["customer_number"]): row["name"] for row in csv.DictReader(file)}
    try:
        return names[branch_org_id, customer_number]
    except KeyError:
        raise FrontEndError(f"Customer {customer_number} has no branch {branch_org_id}.") from None


def numbered(lines: Sequence[str]) -> list[str]:
    return [f"{number}: {line}" for number, line in enumerate(lines, start=1)]


def visible_lines(dom_snapshot: str) -> list[str]:
    """What a person sees of the page, without scripts, styles, and what is marked as hidden."""
    reader = _PageReader()
    reader.feed(dom_snapshot)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.texts).splitlines())
    return [line for line in lines if line][:MOST_LINES_OF_A_PAGE]


class _PageReader(HTMLParser):
    """Of a snapshot that a browser wrote: every element has its end tag."""

    UNSEEN = frozenset({"head", "script", "style", "template", "noscript"})
    WITHOUT_END = frozenset(
        {"br", "hr", "img", "input", "link", "meta", "wbr", "area", "base", "col", "embed", "source", "track"}
    )
    WITHIN_A_LINE = frozenset({"a", "b", "em", "i", "span", "strong", "small", "code", "td", "th"})

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._unseen: list[str] = []
        """The open elements from the outermost one that is not seen."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._begin_line(tag)
        if tag in self.WITHOUT_END:
            return
        if self._unseen or tag in self.UNSEEN or _is_hidden(dict(attrs)):
            self._unseen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self._begin_line(tag)
        if tag in self._unseen:
            last = len(self._unseen) - 1 - self._unseen[::-1].index(tag)
            del self._unseen[last:]

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            # The source's own line breaks mean no more than a space.
            self.texts.append(" ".join(["", *data.split(), ""]))

    def _begin_line(self, tag: str) -> None:
        if tag not in self.WITHIN_A_LINE:
            self.texts.append("\n")


def _is_hidden(attributes: Mapping[str, str | None]) -> bool:
    style = (attributes.get("style") or "").replace(" ", "").lower()
    return "hidden" in attributes or "display:none" in style or "visibility:hidden" in style


def annotated(text: str, files: Sequence[AttachedFile]) -> tuple[str, tuple[FileAnnotation, ...]]:
    """The answer with numbers in place of its citations, and what these cite.

    `files` is the oldest first; of several with one name the last one counts.
    """
    by_name = {file.reference.name: file for file in files}
    found: list[FileAnnotation] = []

    def number(citation: re.Match[str]) -> str:
        file = by_name.get(citation["file"])
        cited = None if file is None else _looked_up(file, int(citation["line"]), citation["words"])
        if cited is None:
            return f"[not found in {citation['file']}]"
        if cited not in found:
            found.append(cited)
        return f"[{found.index(cited) + 1}]"

    return _CITATION.sub(number, text), tuple(found)


def _looked_up(file: AttachedFile, line: int, words: str) -> FileAnnotation | None:
    """Spaces count for nothing, and everything else counts."""
    if not 1 <= line <= len(file.lines):
        return None
    wanted = " ".join(words.split())
    if not wanted or wanted not in " ".join(file.lines[line - 1].split()):
        return None
    return FileAnnotation(file_id=file.reference.file_id, file_name=file.reference.name, line=line, words=wanted)
