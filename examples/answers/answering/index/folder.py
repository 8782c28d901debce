"""The Markdown files of a folder, each with a digest that tells whether it has changed."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .markdown import Document, read_markdown
from .terms import FORM

SUFFIX = ".md"


class UnreadableError(Exception):
    """A file or folder that cannot be read, as one sentence."""


@dataclass(frozen=True)
class MarkdownFile:
    id: str
    """Its path in the folder, with `/`."""
    text: str

    @property
    def digest(self) -> str:
        """Also of how this version reads it."""
        return hashlib.sha256(f"{FORM}\n{self.id}\n{self.text}".encode()).hexdigest()

    def document(self) -> Document:
        return read_markdown(self.text, Path(self.id).stem)


def markdown_files(folder: Path) -> Iterator[MarkdownFile]:
    """Those in subfolders too, but not in hidden ones.

    Raises:
        UnreadableError: There is no such folder, or a file is not text in UTF-8.
    """
    if not folder.is_dir():
        raise UnreadableError(f"{folder} is not a folder. Name one that holds Markdown files (*{SUFFIX}).")
    for path in sorted(folder.rglob(f"*{SUFFIX}")):
        inner = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in inner.parts):
            yield MarkdownFile(inner.as_posix(), _text(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig").replace("\0", "")
    except UnicodeDecodeError:
        raise UnreadableError(f"{path} is not text in UTF-8. Save it as UTF-8, or remove it from the folder.") from None
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror}.") from error
