"""The files of a run on its page: small pictures are embedded, others are links, and nothing on the page can run.

In: files as a node puts them out, with their paths on this machine. Out: what the page shows of each. A path in a trace
is not trusted: of the file behind it only the bytes of a picture get on the page, and only if its size is the recorded.
"""

import base64
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from devhost.protocol.wire import JsonObject
from devhost.text.counted import counted

LARGEST, ALL_TOGETHER = 1024 * 1024, 8 * 1024 * 1024
"""Bytes of one embedded picture, and of those of a page."""
OPENED_SAFELY = frozenset(
    {
        *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".mp3", ".m4a", ".wav", ".mp4", ".webm", ".mov"),
        *(".txt", ".md", ".csv", ".json", ".pdf", ".docx", ".xlsx", ".pptx", ".zip"),
    }
)
"""Suffixes of files in which a browser runs nothing. HTML, SVG and unknown ones may hold scripts: they get no link."""
_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


@dataclass(frozen=True)
class ShownFile:
    name: str
    facts: str
    path: str
    """Empty for a file that is no longer there, or was never here."""
    link: str
    """Empty where a click could run something."""
    picture: str
    """A data URI, or empty."""


class Attachments:
    """Of one page: all of its pictures share a limit."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder`: the page's own, for links that stay right when both are moved."""
        self._folder = folder
        self._left = ALL_TOGETHER

    def shown(self, files: Iterable[JsonObject]) -> list[ShownFile]:
        return [self._shown(file) for file in files]

    def _shown(self, file: JsonObject) -> ShownFile:
        given = file.get("path")
        path = Path(given) if isinstance(given, str) and _tried(Path(given).is_file) else None
        return ShownFile(
            name=str(file.get("filename") or "file"),
            facts=" · ".join(_facts(file)),
            path="" if path is None else str(path),
            link="" if path is None else self._link(path),
            picture="" if path is None else self._picture(path, file.get("size")),
        )

    def _link(self, path: Path) -> str:
        if path.suffix.lower() not in OPENED_SAFELY:
            return ""
        if self._folder is not None and path.is_relative_to(self._folder):
            return quote(path.relative_to(self._folder).as_posix())
        return path.as_uri() if path.is_absolute() else ""

    def _picture(self, path: Path, size: object) -> str:
        if not isinstance(size, int) or size > min(LARGEST, self._left):
            return ""
        data = _tried(lambda: path.read_bytes() if path.stat().st_size == size else b"") or b""
        mime_type = _picture_type(data)
        if mime_type is None:
            return ""
        self._left -= size
        return f"data:{mime_type};base64,{base64.b64encode(data).decode()}"


def _picture_type(data: bytes) -> str | None:
    """By the bytes: of an SVG, which may hold scripts, there is none."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime_type for beginning, mime_type in _BEGINNINGS.items() if data.startswith(beginning)), None)


def _facts(file: JsonObject) -> Iterator[str]:
    if file.get("mime_type"):
        yield str(file["mime_type"])
    if isinstance(file.get("size"), int):
        yield counted(file["size"], "byte")


def _tried[T](look: Callable[[], T]) -> T | None:
    try:
        return look()
    except (OSError, ValueError):  # gone meanwhile, not ours to read, or a path with NUL
        return None
