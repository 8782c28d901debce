"""A `.difypkg` in a temporary folder, from which devhost runs it as any plugin.

In: the file. Out: the folder, which is removed at the end; or a `PackageError` for what is not a package, or not a safe
one: nothing is ever written outside the folder.
"""

import shutil
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from devhost.errors import PackageError
from devhost.plugin.contents.forbidden import MAX_BYTES, MAX_FILES
from devhost.plugin.declared import MANIFEST_FILE

UNREADABLE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError)
"""What the library raises for a file that is damaged, encrypted, or compressed in another way."""
LINK = 0o120000
COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""That Dify's daemon reads, and that can be read in small steps."""
STEP = 64 * 1024
"""Bytes that are unpacked at a time: the size in the directory may be forged, and the library checks it afterwards."""


@contextmanager
def opened_package(file: Path) -> Iterator[Path]:
    """The folder has the name of the file: errors and traces name it."""
    with tempfile.TemporaryDirectory(prefix="devhost-package-") as home:
        folder = Path(home) / file.stem
        unpack(file, folder)
        yield folder


def unpack(file: Path, folder: Path) -> None:
    """`folder` is made; PackageError for a file that Dify would refuse to open."""
    try:
        if (size := file.stat().st_size) > MAX_BYTES:
            raise PackageError(f"{file} has {size:,} bytes; Dify takes packages of {MAX_BYTES:,} bytes")
        with zipfile.ZipFile(file) as package:
            entries = [entry for entry in package.infolist() if not entry.is_dir()]
            _refuse(file, entries)
            for entry in entries:
                target = folder / entry.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                with package.open(entry) as packed, target.open("wb") as unpacked:
                    shutil.copyfileobj(packed, unpacked, STEP)
    except OSError as error:
        raise PackageError(f"{file} cannot be opened: {error.strerror or error}") from error
    except UNREADABLE as error:
        raise PackageError(f"{file} is not a package, or is damaged: {error}. Make it again") from error


def _refuse(file: Path, entries: list[zipfile.ZipInfo]) -> None:
    """Before anything is written."""
    size = sum(entry.file_size for entry in entries)
    if size > MAX_BYTES or len(entries) > MAX_FILES:
        limit = f"Dify takes {MAX_FILES:,} files with {MAX_BYTES:,} bytes"
        raise PackageError(f"{file} holds {len(entries):,} files with {size:,} bytes; {limit}")
    names = Counter(entry.filename for entry in entries)
    for entry in entries:
        name = PurePosixPath(entry.filename)
        # In the name that is in the file: the library cuts it at a NUL, and reads a backslash as a slash on Windows.
        if name.is_absolute() or ".." in name.parts or "\\" in entry.orig_filename or ":" in name.parts[0]:
            raise PackageError(f"{file} is not safe to unpack: its file {entry.orig_filename!r} is outside the package")
        if (entry.external_attr >> 16) & 0o170000 == LINK:
            raise PackageError(f"{file} is not safe to unpack: its file {entry.filename!r} is a symbolic link")
        if entry.compress_type not in COMPRESSIONS:
            raise PackageError(f"{file} cannot be read by Dify: {entry.filename!r} is compressed in another way")
        if names[entry.filename] > 1:
            raise PackageError(f"{file} holds the file {entry.filename!r} twice: make it again")
    if MANIFEST_FILE not in names:
        raise PackageError(f"{file} is not a plugin's package: it has no {MANIFEST_FILE} at its top")
