"""A path and how its file is opened and made in, an open connection to a file that is up to date out.

What is missing, damaged or out of date is made anew: into a file of its own, then moved into place in one step, so that
a search elsewhere (greenlet, thread, process) sees the old index or the new, never half.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from .errors import IndexUnavailableError


def open_made[Connection](
    path: Path,
    open_if_current: Callable[[Path], Connection | None],
    make: Callable[[Path], None],
    making: Lock,
) -> Connection:
    """Two searches of one turn meet a missing index together; `making` lets one of them make it."""
    current = open_if_current(path)
    if current is None:
        with making:
            current = open_if_current(path)  # somebody else may have made it while we waited
            if current is None:
                _make_in_place(path, make)
                current = open_if_current(path)
    if current is None:
        raise IndexUnavailableError(f"The index '{path.name}' changed while it was opened: are its texts being edited?")
    return current


def _make_in_place(path: Path, make: Callable[[Path], None]) -> None:
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.", suffix=".new")
        os.close(descriptor)
        new = Path(name)
        try:
            make(new)
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise IndexUnavailableError(
            f"The index could not be built in '{path.parent}': {error}. It needs a directory that can be written to."
        ) from error
