"""One command of devhost in a session of its own, so that Ctrl-C in the console's terminal does not reach it.

`stop` ends the turn that goes on, as Ctrl-C does in a chat; `kill` ends the process with everything that it started.
"""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from devhost.console.children.input import Input
from devhost.console.children.session import kill_session
from devhost.errors import ConsoleError

IDLE_SECONDS = 3600.0
IDLE = "The conversation has ended, because nothing was asked for an hour."
HOME = str(Path(__file__).resolve().parents[3])
START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from devhost.__main__ import start; start()"
"""This very devhost, whatever the current folder is. PYTHONPATH is not set, because the plugins would inherit it."""


class Child:
    def __init__(self, arguments: Sequence[str], output: Path, *, idle_seconds: float = IDLE_SECONDS) -> None:
        """`arguments` of devhost; `output`: where what it prints goes; `idle_seconds`: how long it waits for a line."""
        self.arguments = tuple(arguments)
        self.output = output
        self.why = ""
        """Why its input was closed, if no person did that."""
        self.told_at = time.monotonic()
        """When it got its last line, or began."""
        self._idle_seconds = idle_seconds
        self._process = _started(self.arguments, output)
        assert self._process.stdin is not None  # noqa: S101 - Popen was given PIPE
        self._input = Input(self._process.stdin)
        self._idle = self._timer()
        self._renewing = threading.Lock()
        # Its end is taken note of at once, so that it does not stay as a zombie.
        threading.Thread(target=self._await_the_end, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it goes on; below 0 for a signal."""
        return self._process.poll()

    @property
    def told(self) -> int:
        """How many lines it got."""
        return self._input.told

    def tell(self, line: str, after: int | None = None) -> bool:
        """Sends a line to its input; whether it was sent.

        `after`: how many lines it must have got, because what is told answers the last one's turn.
        """
        if self.exit_code is not None or not self._input.tell(line, after):
            return False
        with self._renewing:
            self.told_at = time.monotonic()
            self._idle.cancel()
            self._idle = self._timer()
        return True

    def close_input(self, why: str = "") -> None:
        """No further question comes: it ends after the turn that goes on."""
        self.why = self.why or why
        self._input.close()

    def stop(self) -> None:
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        if self.exit_code is None:
            self._signal(signal.SIGKILL)
            kill_session(self._process.pid)

    def end(self) -> None:
        """Lets it end its plugins."""
        self._signal(signal.SIGTERM)

    def wait(self, seconds: float) -> bool:
        """Whether it ended within so many seconds."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _timer(self) -> threading.Timer:
        """A chat that nobody talks to keeps its plugins running."""
        timer = threading.Timer(self._idle_seconds, self.close_input, (IDLE,))
        timer.daemon = True
        timer.start()
        return timer

    def _await_the_end(self) -> None:
        self._process.wait()
        self._idle.cancel()
        self._input.close()  # a console that starts many would run out of files

    def _signal(self, number: signal.Signals) -> None:
        """To the process alone: it ends its plugins itself."""
        if self.exit_code is None:
            self._process.send_signal(number)


def _started(arguments: Sequence[str], output: Path) -> "subprocess.Popen[bytes]":
    """ConsoleError if the system refuses it, as it does an argument of more than 128 KiB, or a full disk."""
    try:
        with output.open("wb") as printed:
            return subprocess.Popen(
                [sys.executable, "-P", "-c", START, HOME, *arguments],
                stdin=subprocess.PIPE,
                stdout=printed.fileno(),
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        raise ConsoleError(f"the command cannot be started: {error}") from error
