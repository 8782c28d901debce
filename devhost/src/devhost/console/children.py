"""Runs devhost commands as child processes of the console.

The trace of a run records what the run did. A file beside the trace holds the output of its command.
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
    """One devhost command in its own session, so that Ctrl-C in the console's terminal does not reach the command."""

    def __init__(self, arguments: Sequence[str], output: Path, errors: Path | None = None) -> None:
        """Starts devhost with these arguments.

        Standard output goes to the file `output`. Standard error goes to the same file unless `errors` names another.
        Raises ConsoleError if the system cannot start the command, for example because an argument is longer than
        128 KiB or the disk is full.
        """
        self.output = output
        self.told = 0
        """How many lines were sent to the command."""
        self.asked = 0
        """How many questions were sent to the command."""
        self.answered = ""
        """The id of the form that the last line answered; empty if the line was a question."""
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
        """The exit code, or `None` while the command is running. A code below 0 stands for a signal."""
        return self._process.poll()

    def tell(self, line: str, after: int | None = None, form: str = "") -> bool:
        """Sends a line to the command's input and returns whether it was sent.

        With `after`, the line is sent only if exactly `after` lines were sent before, because the line responds to the
        turn of the last line. `form` is the id of the form that the line answers. Without `form`, the line is a
        question.
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
            except OSError:  # the command has ended in the meantime
                return False
        return True

    def stop(self) -> None:
        """Ends the current turn, as Ctrl-C does in a chat."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> None:
        """Terminates the command, which then ends its plugins."""
        self._process.terminate()

    def wait(self) -> None:
        """Waits for the command to end and kills it after ten seconds."""
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()


def answer_of(arguments: Sequence[str]) -> str:
    """Returns the output of a short devhost command. Raises ConsoleError with the command's message after a failure."""
    command = devhost_command(sys.executable, arguments)
    ended = subprocess.run(command, check=False, capture_output=True, stdin=subprocess.DEVNULL, text=True)
    if ended.returncode:
        raise ConsoleError(printable(ended.stderr).strip().removeprefix("Error: ") or "the command failed")
    return ended.stdout


# All child processes of a console, by the names of their runs. The processes end when the console ends.

MOST = 8
"""How many commands may run at once. Each command has a process for devhost and one for each plugin."""


class Children:
    """The child processes of a console by the names of their runs."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._children: dict[str, Child] = {}
        self._changing = threading.Lock()

    def start(self, name: str, arguments: Sequence[str], output: Path, errors: Path | None = None) -> Child:
        """Starts a child for a new run.

        Raises ConsoleError if a child of this name is running, and BusyError if too many children are running.
        """
        with self._changing:
            running = tuple(filter(self.is_running, self._children))
            if name in running:
                raise ConsoleError(f"{name} is already running")
            if len(running) >= self._most:
                raise BusyError(running)
            child = self._children[name] = Child(arguments, output, errors)
        return child

    def of(self, name: str) -> Child | None:
        """Returns the child of a run, or `None` if this console did not start the run."""
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
