"""A folder with everything in it that could lead out, and attempts to read a file of it."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from internal.host.files import (
    FileBytes,
    FileRefused,
    read_local_file,
)

INSIDE, OUTSIDE = b"inside", b"OUTSIDE: must not be read"


@contextmanager
def at_once() -> Iterator[None]:
    """Fail rather than hang: a FIFO that is opened to be read waits for a writer."""

    def give_up(*_: object) -> None:
        raise AssertionError("blocked")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(5)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def root_in(world: Path) -> Path:
    """A root with everything in it that could lead out."""
    outside, root = world / "outside", world / "files"
    (root / "sub").mkdir(parents=True)
    outside.mkdir()
    (world / "files-too").mkdir()
    for path in (outside / "secret.txt", world / "secret.txt", world / "files-too" / "secret.txt"):
        path.write_bytes(OUTSIDE)
    for path in (root / "a.txt", root / "sub" / "b.txt", root / "%2e%2e", root / "with space.txt"):
        path.write_bytes(INSIDE)
    (root / "empty").write_bytes(b"")
    (root / "to_inside").symlink_to("sub/b.txt")
    (root / "to_secret").symlink_to(outside / "secret.txt")
    (root / "to_outside").symlink_to(outside)
    (root / "to_itself").symlink_to("to_itself")
    (root / "to_nothing").symlink_to("nothing")
    (root / "to_zero").symlink_to("/dev/zero")
    os.mkfifo(root / "fifo")
    return root


def attempt(location: str, root: Path, **limits: int) -> FileBytes | FileRefused:
    with at_once():
        try:
            return read_local_file(location, root=root, **limits)
        except FileRefused as refusal:
            return refusal


def refused(location: str, root: Path, **limits: int) -> bool:
    outcome = attempt(location, root, **limits)
    assert isinstance(outcome, FileBytes) or str(root) not in str(outcome)
    assert isinstance(outcome, FileBytes) or outcome.__cause__ is None
    return isinstance(outcome, FileRefused)
