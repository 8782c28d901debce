"""The commands of devhost that the console started, as processes.

What a run did is in its trace; what its command printed is in a file beside it.
"""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from devhost.console.folder import OUTPUT, RunFolder
from devhost.console.setup import SETUP, Setup
from devhost.errors import BusyError, ConsoleError
from devhost.home import devhost_command

# Kills all processes of a session. Plugins have process groups of their own, but stay in the session of their
# devhost.

PROCESSES = Path("/proc")


def kill_session(leader: int) -> None:
    """Twice, because a process may start another one while the first list is gone through."""
    for _ in range(2):
        for process in _processes():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getsid(process) == leader:
                    os.kill(process, signal.SIGKILL)


def _processes() -> list[int]:
    if (PROCESSES / "self").exists():
        return [int(entry.name) for entry in PROCESSES.iterdir() if entry.name.isdigit()]
    listed = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, check=True)  # noqa: S607 - macOS has no /proc
    return [int(number) for number in listed.stdout.split()]


# One command of devhost in a session of its own, so that Ctrl-C in the console's terminal does not reach it.
#
# `stop` ends the turn that goes on, as Ctrl-C does in a chat; `kill` ends the process with everything that it
# started.

IDLE_SECONDS = 3600.0
IDLE = "The conversation has ended, because nothing was asked for an hour."


class Child:
    def __init__(self, arguments: Sequence[str], output: Path, *, idle_seconds: float = IDLE_SECONDS) -> None:
        """`arguments` of devhost; `output`: where what it prints goes; `idle_seconds`: how long it waits for a line."""
        self.output = output
        self.why = ""
        """Why its input was closed, if no person did that."""
        self.told = 0
        """How many lines it got."""
        self.began = time.time()
        self.told_at = time.monotonic()
        """When it got its last line, or began."""
        self._process = _started(arguments, output)
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._telling = threading.Lock()
        self._is_open = True
        # A pipe holds 64 KiB, and a process that starts, or that is busy with a turn, does not read.
        threading.Thread(target=self._write_all, args=(idle_seconds,), daemon=True).start()
        # Its end is taken note of at once, so that it does not stay as a zombie, nor its input as an open file.
        threading.Thread(target=self._await_the_end, daemon=True).start()

    @property
    def exit_code(self) -> int | None:
        """None while it goes on; below 0 for a signal."""
        return self._process.poll()

    def tell(self, line: str, after: int | None = None) -> bool:
        """Sends a line to its input; whether it was sent.

        `after`: how many lines it must have got, because what is told answers the last one's turn.
        """
        with self._telling:
            if self.exit_code is not None or not self._is_open or after not in {None, self.told}:
                return False
            self.told += 1
            self.told_at = time.monotonic()
            self._lines.put(line.encode() + b"\n")
        return True

    def close_input(self, why: str = "") -> None:
        """No further question comes: it ends after the turn that goes on."""
        with self._telling:
            if self._is_open:
                self._is_open = False
                self.why = why
                self._lines.put(None)

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

    def _write_all(self, idle_seconds: float) -> None:
        """An idle chat keeps its plugins running."""
        with contextlib.suppress(OSError), self._process.stdin or contextlib.nullcontext() as pipe:  # it may have ended
            while pipe is not None:
                try:
                    line = self._lines.get(timeout=idle_seconds)
                except queue.Empty:
                    self.close_input(IDLE)
                    continue
                if line is None:
                    return
                pipe.write(line)
                pipe.flush()

    def _await_the_end(self) -> None:
        self._process.wait()
        self.close_input()

    def _signal(self, number: signal.Signals) -> None:
        """To the process alone: it ends its plugins itself."""
        if self.exit_code is None:
            self._process.send_signal(number)


def _started(arguments: Sequence[str], output: Path) -> "subprocess.Popen[bytes]":
    """ConsoleError if the system refuses it, as it does an argument of more than 128 KiB, or a full disk."""
    try:
        with output.open("wb") as printed:
            return subprocess.Popen(
                devhost_command(sys.executable, arguments),
                stdin=subprocess.PIPE,
                stdout=printed.fileno(),
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        raise ConsoleError(f"the command cannot be started: {error}") from error


# All children of a console, by the names of their runs; they end with it.

PATIENCE_SECONDS = 10.0
MOST = 8
"""That go on at once: each holds a process for devhost and one for each plugin."""
ROOM = (
    "The console ended this conversation, so that another run could begin: nothing was asked here for the longest time."
)


class Children:
    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._children: dict[str, Child] = {}
        self._changing = threading.Lock()

    def start(
        self, name: str, arguments: Sequence[str], output: Path, may_end: Callable[[str], bool] = lambda _name: False
    ) -> Child:
        """The child of a new run; ConsoleError if one of this name goes on, BusyError if too many do.

        `may_end`: whether a run only waits for a question, so that it may be ended if there are too many.
        """
        with self._changing:
            running = {each: child for each, child in self._children.items() if child.exit_code is None}
            if name in running:
                raise ConsoleError(f"{name} goes on already")
            if len(running) >= self._most:
                _make_room(running, may_end)
            child = self._children[name] = Child(arguments, output)
        return child

    def of(self, name: str) -> Child | None:
        """None for a run that this console did not start."""
        return self._children.get(name)

    def is_running(self, name: str) -> bool:
        child = self.of(name)
        return child is not None and child.exit_code is None

    def end(self) -> None:
        """All of them; those that take too long are killed."""
        with self._changing:
            children = list(self._children.values())
        for child in children:
            child.end()
        for child in children:
            if not child.wait(PATIENCE_SECONDS):
                child.kill()


def _make_room(running: Mapping[str, Child], may_end: Callable[[str], bool]) -> None:
    idle = [child for name, child in running.items() if may_end(name)]
    if not idle:
        raise BusyError(tuple(running))
    oldest = min(idle, key=lambda child: child.told_at)
    oldest.close_input(ROOM)
    oldest.wait(PATIENCE_SECONDS)


# Starts a run: its setup beside its trace, and its process.

type Start = Callable[[str, Sequence[str], Path], Child]
"""With a name, arguments of devhost, and the file for what it prints."""


def start_run(folder: RunFolder, start: Start, setup: Setup, *lines: str) -> str:
    """`lines`: what its process is told at once. ConsoleError if that cannot be started."""
    name = folder.new_name(setup.about)
    setup.write(folder.beside(name, SETUP))
    output, shown = folder.beside(name, OUTPUT), ("--trace", str(folder.trace(name)), "--no-color")
    try:
        lines_of = ("--json-lines",) if setup.converses else ()
        child = start(name, (*setup.arguments(folder.trace), *shown, *lines_of), output)
    except ConsoleError:
        folder.beside(name, SETUP).unlink()
        output.unlink(missing_ok=True)
        raise
    for line in lines:
        child.tell(line)
    return name
