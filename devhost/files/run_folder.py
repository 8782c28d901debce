"""Where the files of a run stay, so that a person can open them afterwards.

In: a name, a trace's file. Out: a folder: beside the trace, which names the files, or else a temporary one.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devhost.errors import TraceError

BESIDE_A_TRACE = ".files"
"""In place of the trace's own suffix."""
SENT = "sent"
"""The folder in it for copies of what went with the questions."""


@contextmanager
def run_folder(name: str, trace_file: Path | None = None) -> Iterator[Path]:
    """The folder beside a trace is made with its first file, and is older if an older run had the same trace.

    A temporary one is removed again if nothing was saved. A trace that is a device has nothing beside it; one that is
    not there yet will be a file.
    """
    if trace_file is not None and (trace_file.is_file() or not trace_file.exists()):
        beside = trace_file.absolute().with_suffix(BESIDE_A_TRACE)
        if beside.exists() and not beside.is_dir():
            raise TraceError(f"{beside} is a file, but the files of the run go into a folder of that name: move it")
        yield beside
        return
    folder = Path(tempfile.mkdtemp(prefix=f"devhost-{name}-"))
    try:
        yield folder
    finally:
        if not any(folder.iterdir()):
            folder.rmdir()
