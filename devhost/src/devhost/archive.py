"""Zip files that somebody else made, opened within bounds."""

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
"""The record at the end of a zip file: it says how many bytes the list of entries has."""
_END_MARK = b"PK\5\6"
_MARK_OF_64 = b"PK\6\7"
"""The mark of the record before it, which exists where there are more entries or bytes than this one can say."""
_LONGEST_ENTRY = 1_000
"""Bytes. An entry takes 46, and its path."""


@dataclass(frozen=True)
class ArchiveKind:
    """What a zip file is to be, in words, and how large it may be."""

    name: str
    """The kind with its article: "a package"."""
    advice: str
    """What to do about one that is damaged."""
    most_bytes: int
    """The most bytes of the file, and of all files in it together."""
    most_files: int
    error: type[HostError] = HostError


@contextmanager
def opened_archive(file: Path, kind: ArchiveKind) -> Iterator[zipfile.ZipFile]:
    """The archive, whose bounds were checked before anything of it is read.

    Raises:
        HostError: of the kind's class, here or while the archive is read.
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
    """Refuse a list of entries that is too long to be read: the library reads it before it says anything."""
    at = content.rfind(_END_MARK, -(2**16 + _END.size))
    if at < 0 or at + _END.size > len(content):
        return  # it is not a zip file, and the library says so
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
