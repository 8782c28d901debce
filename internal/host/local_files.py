"""The guard of local files: a tool may name a path, and only files under ``/files`` are read.

In: a path that a tool returned. Out: its bytes and sniffed type, or FileRefused, which says nothing about the file
system. Everything is checked on the open descriptor, so that a path that changes meanwhile makes no difference.
"""

import fcntl
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import filetype

from internal.text.wellformed import wellformed

FILES_ROOT = Path("/files")
MAX_LOCAL_FILE_BYTES = 5 * 1024 * 1024
"""Bytes."""

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_PATH_LENGTH = 1024


class FileRefused(Exception):  # noqa: N818 - says what happened
    """The file is not passed on; the text names no path and no reason of the file system's."""

    def __init__(self) -> None:
        super().__init__("file refused: only regular files of at most 5 MiB under /files can be passed on")


@dataclass(frozen=True)
class LocalFile:
    """A file that was read; ``filename`` is its last path component."""

    data: bytes
    filename: str
    mime_type: str


def is_local_path(location: str) -> bool:
    """Whether a location means this machine's file system rather than an address."""
    try:
        scheme = urlsplit(location).scheme
    except ValueError:
        return True  # not an address that can be fetched
    return scheme in {"", "file"} or len(scheme) == 1  # a single letter is a drive


def read_local_file(location: str, *, root: Path = FILES_ROOT, limit: int = MAX_LOCAL_FILE_BYTES) -> LocalFile:
    """Read the file that a path or ``file:`` URL names.

    Raises:
        FileRefused: it is outside the root, no regular file, too large, or cannot be read.
    """
    try:
        path = unquote(urlsplit(location).path) if location.startswith("file:") else location
        resolved = os.path.realpath(path, strict=True)
        allowed = os.path.realpath(root, strict=True)
        if not _lies_under(resolved, allowed):
            raise FileRefused
        descriptor = os.open(resolved, _FLAGS)
    except (OSError, ValueError):
        raise FileRefused from None
    try:
        data = _read_checked(descriptor, allowed, limit)
    finally:
        os.close(descriptor)
    name = wellformed(os.path.basename(resolved))  # noqa: PTH119 - a string all the way
    return LocalFile(data, name, sniff_mime_type(data))


def _read_checked(descriptor: int, allowed: str, limit: int) -> bytes:
    """Check the descriptor itself, then read; a file that grows meanwhile is refused too."""
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            raise FileRefused
        if not _lies_under(_path_of(descriptor), allowed):
            raise FileRefused
        data = b""
        while len(data) <= limit and (block := os.read(descriptor, limit + 1 - len(data))):
            data += block
    except OSError:
        raise FileRefused from None
    if len(data) > limit:
        raise FileRefused
    return data


def _lies_under(path: str, root: str) -> bool:
    return os.path.commonpath([path, root]) == root and path != root


def _path_of(descriptor: int) -> str:
    """The real path of an open file, from the kernel."""
    if hasattr(fcntl, "F_GETPATH"):  # macOS, for debugging
        return os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(_MAX_PATH_LENGTH)).rstrip(b"\0"))
    return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - a string all the way


def sniff_mime_type(data: bytes) -> str:
    """The type that the bytes show; names and headers do not count."""
    guessed = filetype.guess_mime(data)  # type: ignore[no-untyped-call] # the library has no annotations
    if guessed:
        return str(guessed)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "application/octet-stream" if "\0" in text else "text/plain"
