"""Where a page may be written: over no file that devhost did not make.

In: a page, a path. Out: the file, or a `TraceError` with a sentence for the person at the terminal.
"""

from pathlib import Path

from devhost.errors import TraceError

GENERATOR = "devhost report"
"""The page says in its head what made it, and is recognised by that."""
MARK = f'<meta name="generator" content="{GENERATOR}">'.encode()
HEAD_BYTES = 1_000


def write_page(page: str, file: Path, trace: Path, *, force: bool) -> None:
    """`force` overwrites any other file, but never the trace."""
    try:
        refuse_to_destroy(file, trace, force=force)
        file.write_text(page, encoding="utf-8", errors="replace")
    except OSError as error:
        raise TraceError(f"{file} cannot be written: {error.strerror}") from error


def refuse_to_destroy(file: Path, trace: Path, *, force: bool) -> None:
    """TraceError for a file that is not to be overwritten."""
    if file.is_dir():
        raise TraceError(f"{file} is a folder: name a file in it, such as {file / trace.with_suffix('.html').name}")
    if not file.parent.is_dir():
        raise TraceError(f"{file} cannot be written: the folder {file.parent} does not exist")
    if file.exists() and file.samefile(trace):
        raise TraceError(f"{file} is the trace itself: name another file")
    if force or (file.exists() and not file.is_file()):  # a device keeps nothing
        return
    if file.is_symlink():
        raise TraceError(f"{file} is a link to {file.readlink()}: name that file, or follow the link with --force")
    if file.exists() and not _may_be_replaced(file):
        raise TraceError(f"{file} exists and is not a page that devhost made: name another file, or give --force")


def _may_be_replaced(file: Path) -> bool:
    """A page of ours, or an empty file."""
    with file.open("rb") as existing:
        head = existing.read(HEAD_BYTES)
    return not head or MARK in head
