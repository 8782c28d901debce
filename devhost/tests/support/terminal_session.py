"""A command on a terminal of its own: tests wait for what it shows, and press keys."""

import errno
import os
import pty
import re
import select
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.waiting import PATIENCE

CTRL_C = "\x03"
CTRL_D = "\x04"
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

    def press(self, keys: str | bytes) -> None:
        os.write(self._terminal, keys.encode() if isinstance(keys, str) else keys)

    def wait_for(self, text: str) -> str:
        """What was shown from the last wait up to and with the text."""
        while (found := self.shown.find(text, self._read_to)) < 0:
            assert self._read(), f"{text!r} was not shown, but: {self.shown[self._read_to :]!r}"
        return self._take(found + len(text))

    def wait_for_the_end(self) -> str:
        """What was shown from the last wait to the end of the program."""
        while self._read():
            pass
        return self._take(len(self.shown))

    def _read(self) -> bool:
        """Whether there was more."""
        ready, _, _ = select.select([self._terminal], [], [], PATIENCE)
        assert ready, f"nothing more was shown within {PATIENCE} s; last: {self.shown[self._read_to :]!r}"
        try:
            shown = os.read(self._terminal, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # how Linux says that the other side of a terminal is closed
                raise
            return False
        self.shown += _ESCAPES.sub("", shown.decode(errors="replace"))
        return bool(shown)

    def _take(self, to: int) -> str:
        begin = self._read_to
        self._read_to = to
        return self.shown[begin:to]


@contextmanager
def on_a_terminal(command: Sequence[str], directory: Path) -> Iterator[TerminalSession]:
    """`command` is what follows `python`."""
    terminal, program_side = pty.openpty()
    termios.tcsetwinsize(terminal, (50, 200))
    process = subprocess.Popen(
        [sys.executable, "-c", TAKE_THE_TERMINAL, sys.executable, *command],
        cwd=directory,
        stdin=program_side,
        stdout=program_side,
        stderr=program_side,
        env={**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"},
        start_new_session=True,
    )
    os.close(program_side)
    try:
        yield TerminalSession(process, terminal)
    finally:
        process.terminate()
        process.wait(PATIENCE)
        os.close(terminal)
