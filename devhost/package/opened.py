"""A `.difypkg` in a temporary folder, from which devhost runs it as any plugin.

In: the file. Out: the folder, which is removed at the end; or a `PackageError` for what is not a package, or not a safe
one: nothing is ever written outside the folder.
"""

import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from devhost.errors import PackageError
from devhost.plugin.contents.forbidden import MAX_BYTES, MAX_FILES
from devhost.plugin.declared import MANIFEST_FILE

UNREADABLE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError)
"""What the library raises for a file that is damaged, encrypted, or compressed in another way."""
LINK = 0o120000


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
        with zipfile.ZipFile(file) as package:
            entries = [entry for entry in package.infolist() if not entry.is_dir()]
            _refuse(file, entries)
            for entry in entries:
                target = folder / entry.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(package.read(entry))
    except OSError as error:
        raise PackageError(f"{file} cannot be opened: {error.strerror or error}") from error
    except UNREADABLE as error:
        raise PackageError(f"{file} is not a package, or is damaged: {error}. Make it again") from error


def _refuse(file: Path, entries: list[zipfile.ZipInfo]) -> None:
    """Before anything is written."""
    names = [entry.filename for entry in entries]
    for entry in entries:
        name = PurePosixPath(entry.filename)
        # In the name that is in the file: the library cuts it at a NUL, and reads a backslash as a slash on Windows.
        if name.is_absolute() or ".." in name.parts or "\\" in entry.orig_filename or ":" in name.parts[0]:
            raise PackageError(f"{file} is not safe to unpack: its file {entry.orig_filename!r} is outside the package")
        if (entry.external_attr >> 16) & 0o170000 == LINK:
            raise PackageError(f"{file} is not safe to unpack: its file {entry.filename!r} is a symbolic link")
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise PackageError(f"{file} holds the file {twice!r} twice: make it again")
    size = sum(entry.file_size for entry in entries)
    if size > MAX_BYTES or len(entries) > MAX_FILES:
        limit = f"Dify takes {MAX_FILES:,} files with {MAX_BYTES:,} bytes"
        raise PackageError(f"{file} holds {len(entries):,} files with {size:,} bytes; {limit}")
    if MANIFEST_FILE not in names:
        raise PackageError(f"{file} is not a plugin's package: it has no {MANIFEST_FILE} at its top")
