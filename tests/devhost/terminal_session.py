"""A command on a terminal of its own: what it shows can be waited for, and keys can be pressed."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

SECONDS = 30
"""Bounds a wait for what a correct program shows at once."""
CTRL_C, CTRL_D = "\x03", "\x04"
TAKE_THE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.executable, sys.argv[1:])"
)
_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[a-zA-Z]|[=>])|\r|\x07")


class TerminalSession:
    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self.shown = ""
        self._terminal = terminal
        self._read_to = 0

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def wait_for(self, text: str) -> str:
        """What was shown from the last wait up to and with the text."""
        deadline = time.monotonic() + SECONDS
        while (found := self.shown.find(text, self._read_to)) < 0:
            ready, _, _ = select.select([self._terminal], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{text!r} was not shown within {SECONDS} s, but: {self.shown[self._read_to :]!r}"
            self.shown += _ESCAPES.sub("", os.read(self._terminal, 65536).decode(errors="replace"))
        begin, self._read_to = self._read_to, found + len(text)
        return self.shown[begin : self._read_to]


@contextmanager
def on_a_terminal(command: Sequence[str], directory: Path) -> Iterator[TerminalSession]:
    """`command` is what follows `python`."""
    terminal, program_side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", TAKE_THE_TERMINAL, sys.executable, *command],
        cwd=directory,
        stdin=program_side,
        stdout=program_side,
        stderr=program_side,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
        start_new_session=True,
    )
    os.close(program_side)
    try:
        yield TerminalSession(process, terminal)
    finally:
        process.terminate()
        process.wait(SECONDS)
        os.close(terminal)
