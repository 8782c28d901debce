"""A plugin's own process: `python -m main` in its directory, with the way it is run in its environment.

The transport chooses who reads its stdout; the end of its stderr is kept for error messages. When stdout has come to
its end the process is over, and the reason is passed on.
"""

import contextlib
import os
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from devhost.errors import PluginLostError, PluginStartError
from devhost.process.transports.lines import read_lines

LOOPBACK = "127.0.0.1"
WITHHELD = ("OPENAI_", "PYTHONPATH")
"""How the names begin of variables that a plugin does not get."""

type ReadStdout = Callable[[IO[bytes]], None]
type Ended = Callable[[str], None]


class PluginProgram:
    def __init__(self, directory: Path, entrypoint: str, python: str, stop_seconds: float) -> None:
        self.directory = directory
        self.killed_because: str | None = None
        self._command = [python, "-m", entrypoint]
        self._stop_seconds = stop_seconds
        self._stderr: deque[str] = deque(maxlen=40)
        self._readers: list[threading.Thread] = []
        self.lived: Callable[[], None] = lambda: None
        """Called for all that comes on stderr."""
        # Its own lock, not one that a reader needs: a write blocks while the pipe is full, and the plugin empties
        # the pipe only while its output is being read.
        self._writing = threading.Lock()

    def start(
        self, environment: Mapping[str, str], read_stdout: ReadStdout, ended: Ended, printed: Callable[[str], None]
    ) -> None:
        """`printed` gets the lines on stderr."""
        try:
            self.process = subprocess.Popen(
                self._command,
                cwd=self.directory,
                env={**_inherited_environment(), "PYTHONUTF8": "1", **environment},  # as in Dify's containers
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,  # Ctrl-C is for devhost, which then stops its plugins itself
            )
        except OSError as error:
            raise PluginStartError(f"{self.directory}: {' '.join(self._command)} cannot be started: {error}") from error
        self._readers = [  # in this order: at the end of stdout, stderr is waited for
            threading.Thread(target=self._read_stderr, args=(printed,), daemon=True),
            threading.Thread(target=self._read_stdout, args=(read_stdout, ended), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def write(self, line: bytes) -> None:
        """Write to its stdin; PluginLostError when the plugin no longer reads it."""
        stdin = self.process.stdin
        assert stdin is not None  # noqa: S101 - Popen was given PIPE
        try:
            with self._writing:
                stdin.write(line)
                stdin.flush()
        except (OSError, ValueError) as error:  # a broken pipe, or one that stop() has closed
            raise PluginLostError(self.killed_because or "the plugin no longer reads its stdin") from error

    def condemn(self, reason: str) -> None:
        """The reason to report if it ends by itself before it is killed."""
        self.killed_because = self.killed_because or reason

    def kill(self, reason: str) -> None:
        self.condemn(reason)
        self.process.kill()

    def stop(self) -> None:
        """Ask it to end, kill it if it does not, and return when nothing of it is left."""
        self.killed_because = self.killed_because or "the plugin was stopped"
        # The SDK spins on an stdin at its end instead of leaving, so closing the pipe does not stop it.
        self.process.terminate()
        if not self.has_exited(self._stop_seconds):
            self.process.kill()
            self.process.wait()
        for reader in self._readers:
            reader.join(self._stop_seconds)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what stdin still buffers can no longer be delivered
                    pipe.close()

    def has_exited(self, within_seconds: float) -> bool:
        try:
            self.process.wait(within_seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def reason_for(self, silence: str) -> str:
        """Why it ended: it was killed, it exited, or it closed its stdout, for which it is killed here."""
        if self.killed_because is not None:
            return self.killed_because
        if not self.has_exited(self._stop_seconds):
            self.process.kill()
            return silence
        self._readers[0].join(self._stop_seconds)
        code = self.process.returncode
        if code == 0:
            return "the plugin exited with code 0: its main.py came to its end"
        return f"the plugin exited with code {code}" if code > 0 else f"the plugin was killed by signal {-code}"

    def last_words(self) -> str:
        """The end of what it wrote to stderr."""
        return "\n".join(self._stderr)

    def _read_stdout(self, read_stdout: ReadStdout, ended: Ended) -> None:
        stdout = self.process.stdout
        assert stdout is not None  # noqa: S101 - Popen was given PIPE
        read_stdout(stdout)
        ended(self.reason_for("the plugin closed its stdout"))

    def _read_stderr(self, printed: Callable[[str], None]) -> None:
        stderr = self.process.stderr
        assert stderr is not None  # noqa: S101 - Popen was given PIPE

        def keep(line: str) -> None:
            self._stderr.append(line.rstrip())
            printed(line)

        read_lines(stderr, keep, self.lived)


def _inherited_environment() -> Mapping[str, str]:
    """Without the key and URL of devhost's own model (a URL may contain a password): in Dify no plugin sees them.

    Without PYTHONPATH: in Dify a plugin finds its own modules and the installed ones, and no others.
    The SDK's clients obey proxy settings, and no proxy leads to this machine's own loopback address.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(WITHHELD)}
    direct = {name: ",".join(filter(None, [os.environ.get(name), LOOPBACK])) for name in ("NO_PROXY", "no_proxy")}
    return {**inherited, **direct}
