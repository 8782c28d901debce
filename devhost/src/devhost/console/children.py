"""The commands of devhost that the console started, as processes.

What a run did is in its trace; what its command printed is in a file beside it.
"""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from devhost.errors import BusyError, ConsoleError
from devhost.home import devhost_command
from devhost.terminal.tables import printable


class Child:
    """One command of devhost, in a session of its own, so that Ctrl-C in the console's terminal does not reach it."""

    def __init__(self, arguments: Sequence[str], output: Path, errors: Path | None = None) -> None:
        """`arguments` of devhost; `output`: where what it prints goes; `errors`: where its standard error goes alone.

        ConsoleError if the system refuses it, as it does an argument of more than 128 KiB, or a full disk.
        """
        self.output = output
        self.told = 0
        """How many lines it got."""
        self.asked = 0
        self.answered = ""
        """How many of them were questions; the id of the form that the last answer was for."""
        self.began = time.time()
        self._telling = threading.Lock()
        try:
            with ExitStack() as opened:
                printed = opened.enter_context(output.open("wb"))
                if errors is None:
                    apart = printed
                else:
                    apart = opened.enter_context(errors.open("wb"))
                self._process = subprocess.Popen(
                    devhost_command(sys.executable, arguments),
                    stdin=subprocess.PIPE,
                    stdout=printed,
                    stderr=apart,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            raise ConsoleError(f"the command cannot be started: {error}") from error

    @property
    def exit_code(self) -> int | None:
        """None while it goes on; below 0 for a signal."""
        return self._process.poll()

    def tell(self, line: str, after: int | None = None, form: str = "") -> bool:
        """Sends a line to its input; whether it was sent.

        `after`: how many lines it must have got, because what is told answers the last one's turn. `form`: the id of
        the form that it answers; without one it is a question.
        """
        with self._telling:
            pipe = self._process.stdin
            if pipe is None or self.exit_code is not None or after not in {None, self.told}:
                return False
            self.told += 1
            self.asked = self.asked + (not form)
            self.answered = form
            try:
                pipe.write(line.encode() + b"\n")
                pipe.flush()
            except OSError:  # it has ended meanwhile
                return False
        return True

    def stop(self) -> None:
        """Ends the turn that goes on, as Ctrl-C does in a chat."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> None:
        """It ends its plugins itself."""
        self._process.terminate()

    def wait(self) -> None:
        """What has not ended in ten seconds is killed."""
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()


def answer_of(arguments: Sequence[str]) -> str:
    """What a short command of devhost prints; ConsoleError with what it says if it fails."""
    command = devhost_command(sys.executable, arguments)
    ended = subprocess.run(command, check=False, capture_output=True, stdin=subprocess.DEVNULL, text=True)
    if ended.returncode:
        raise ConsoleError(printable(ended.stderr).strip().removeprefix("Error: ") or "the command failed")
    return ended.stdout


# All children of a console, by the names of their runs; they end with it.

MOST = 8
"""That go on at once: each holds a process for devhost and one for each plugin."""


class Children:
    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._children: dict[str, Child] = {}
        self._changing = threading.Lock()

    def start(self, name: str, arguments: Sequence[str], output: Path, errors: Path | None = None) -> Child:
        """The child of a new run; ConsoleError if one of this name goes on, BusyError if too many do."""
        with self._changing:
            running = tuple(filter(self.is_running, self._children))
            if name in running:
                raise ConsoleError(f"{name} goes on already")
            if len(running) >= self._most:
                raise BusyError(running)
            child = self._children[name] = Child(arguments, output, errors)
        return child

    def of(self, name: str) -> Child | None:
        """None for a run that this console did not start."""
        return self._children.get(name)

    def is_running(self, name: str) -> bool:
        child = self.of(name)
        return child is not None and child.exit_code is None

    def end(self) -> None:
        with self._changing:
            children = list(self._children.values())
        for child in children:
            child.end()
        for child in children:
            child.wait()
