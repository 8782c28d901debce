"""Zip files from other people, opened within size limits."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devhost.errors import HostError
from devhost.text import read_file, worded

_END = struct.Struct("<4s4H2LH")
"""The record at the end of a zip file. It contains the size of the list of entries in bytes."""
_END_MARK = b"PK\5\6"
_MARK_OF_64 = b"PK\6\7"
"""The mark of the zip64 record before it, which exists if the numbers are too large for the end record."""
_LONGEST_ENTRY = 1_000
"""The assumed maximum size of a list entry in bytes. An entry takes 46 bytes plus its path."""


@dataclass(frozen=True)
class ArchiveKind:
    """A kind of zip file, with its wording for errors and its size limits."""

    name: str
    """The kind with its article, such as "a package"."""
    advice: str
    """What the user should do if the file is damaged."""
    most_bytes: int
    """The maximum size of the file, and the maximum total size of the files in it."""
    most_files: int
    error: type[HostError] = HostError


@contextmanager
def opened_archive(file: Path, kind: ArchiveKind) -> Iterator[zipfile.ZipFile]:
    """Open the archive, and check its size limits before any of its files is read.

    Raises:
        HostError: An error of the kind's class, on opening or while the archive is read.
    """
    with worded(lambda why: kind.error(f"{file} cannot be opened: {why}")):
        content = read_file(file, kind.most_bytes)
    _refuse_long_list(file, content, kind)
    try:
        with (
            worded(lambda why: kind.error(f"{file} cannot be unpacked: {why}")),
            zipfile.ZipFile(io.BytesIO(content)) as archive,
        ):
            _refuse_large(file, archive, kind)
            yield archive
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        # The library raises these for a file that is damaged, encrypted or compressed in another way.
        raise kind.error(f"{file} is not {kind.name}, or is damaged: {error}. {kind.advice}") from error


def _refuse_long_list(file: Path, content: bytes, kind: ArchiveKind) -> None:
    """Refuse a list of entries that is too long. The library reads the whole list before it can be checked."""
    at = content.rfind(_END_MARK, -(2**16 + _END.size))
    if at < 0 or at + _END.size > len(content):
        return  # it is not a zip file, and the library reports that
    listed = _END.unpack_from(content, at)[5]
    if listed > kind.most_files * _LONGEST_ENTRY or content[max(at - 20, 0) : at].startswith(_MARK_OF_64):
        raise kind.error(f"{file} lists more files than the {kind.most_files:,} that are taken")


def _refuse_large(file: Path, archive: zipfile.ZipFile, kind: ArchiveKind) -> None:
    entries = archive.infolist()
    if len(entries) > kind.most_files:
        raise kind.error(f"{file} holds {len(entries):,} files; at most {kind.most_files:,} are taken")
    size = sum(entry.file_size for entry in entries)
    if size > kind.most_bytes:
        raise kind.error(f"{file} holds {size:,} bytes; at most {kind.most_bytes:,} are taken")
