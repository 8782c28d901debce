"""One command of devhost in a process group of its own.

`stop` ends the turn that goes on, as Ctrl-C does in a chat; `kill` ends the process with everything that it started.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


class Child:
    def __init__(self, arguments: Sequence[str], output: Path) -> None:
        """`arguments` of devhost; `output`: where what it prints goes."""
        self.arguments = tuple(arguments)
        self.output = output
        with output.open("wb") as printed:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "devhost", *arguments],
                stdin=subprocess.PIPE,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def exit_code(self) -> int | None:
        """None while it goes on."""
        return self._process.poll()

    def tell(self, line: str) -> bool:
        """Writes a line to its input; whether it could still be told."""
        if self.exit_code is not None or self._process.stdin is None:
            return False
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            return False
        return True

    def close_input(self) -> None:
        """No further question comes."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

    def stop(self) -> None:
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        if self.exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

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

    def _signal(self, number: signal.Signals) -> None:
        """To the process alone: it ends its plugins itself."""
        if self.exit_code is None:
            self._process.send_signal(number)
