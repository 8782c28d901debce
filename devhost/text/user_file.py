"""The files that a person names, or that lie in a folder that may come from somebody else: the one way to open them.

In: a path. Out: an open file, or its bytes; OSError, with a reason, for what is not a regular file and for what is too
large.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

MOST_BYTES = 5 * 1024 * 1024
"""Of a file that is read as a whole, such as a script; a trace is read in lines, and may be longer."""


def open_file(file: Path) -> BinaryIO:
    """Only regular files: a pipe lets its reader wait without end, and a device such as /dev/zero has no end."""
    opened = open(file, "rb", opener=_without_waiting)  # noqa: SIM115 - Path.open has no opener
    if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        opened.close()
        raise OSError(errno.EINVAL, "it is not a regular file", str(file))
    return opened


def read_file(file: Path) -> bytes:
    """The whole content, of at most `MOST_BYTES`."""
    with open_file(file) as opened:
        content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES // 1024**2} MiB", str(file))
    return content


def real_path(path: Path) -> Path:
    """Absolute, without links; a loop of links stays as it is, and is refused when it is opened."""
    return Path(os.path.realpath(path))


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
