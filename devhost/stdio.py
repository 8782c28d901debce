"""Runs a plugin as the daemon does locally: `python -m main` in its own directory, JSON lines over stdin and stdout.

A line that is too long kills the plugin, as it does there.
"""

import contextlib
import json
import os
import subprocess
import threading
from collections import deque
from pathlib import Path

from devhost.errors import PluginLostError, PluginStartError
from devhost.limits import HostLimits
from devhost.transport import TransportListener
from devhost.wire import JsonObject


class StdioTransport:
    def __init__(self, directory: Path, entrypoint: str, python: str, limits: HostLimits) -> None:
        self._directory = directory
        self._command = [python, "-m", entrypoint]
        self._limits = limits
        self._stderr: deque[str] = deque(maxlen=40)
        self._killed_because: str | None = None
        # Its own lock, not one that the reader needs: a write blocks while the pipe is full, and the plugin empties
        # the pipe only if somebody goes on reading what it says.
        self._writing = threading.Lock()

    def start(self, listener: TransportListener, /) -> None:
        try:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._directory,
                env={**os.environ, "INSTALL_METHOD": "local"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,  # Ctrl-C is for devhost, which then stops its plugins itself
            )
        except OSError as error:
            raise PluginStartError(
                f"{self._directory}: {' '.join(self._command)} cannot be started: {error}"
            ) from error
        self._readers = [
            threading.Thread(target=self._read_stdout, args=(listener,), daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def send(self, envelope: JsonObject, /) -> None:
        line = json.dumps(envelope).encode() + b"\n"
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101 - Popen was given PIPE
        try:
            with self._writing:
                stdin.write(line)
                stdin.flush()
        except (OSError, ValueError) as error:  # a broken pipe, or one that stop() has closed
            raise PluginLostError(self._killed_because or "the plugin no longer reads its stdin") from error

    def kill(self, reason: str, /) -> None:
        self._killed_because = self._killed_because or reason
        self._process.kill()

    def stop(self) -> None:
        self._killed_because = self._killed_because or "the plugin was stopped"
        # The SDK spins on an stdin at its end instead of leaving, so closing the pipe is no way to say goodbye.
        self._process.terminate()
        try:
            self._process.wait(self._limits.stop_seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join(self._limits.stop_seconds)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what stdin still buffers can no longer be delivered
                    pipe.close()

    def last_words(self) -> str:
        return "\n".join(self._stderr)

    def _read_stdout(self, listener: TransportListener) -> None:
        stdout = self._process.stdout
        assert stdout is not None  # noqa: S101 - Popen was given PIPE
        while line := stdout.readline(self._limits.line_bytes):
            if len(line) == self._limits.line_bytes and not line.endswith(b"\n"):
                self.kill(
                    f"the plugin wrote a line of more than {self._limits.line_bytes:,} bytes to stdout: "
                    "the daemon kills it for that, and every session on it is lost"
                )
                break
            self._deliver(line, listener)
        listener.closed(self._killed_because or self._exit_reason())

    def _deliver(self, line: bytes, listener: TransportListener) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            message = line.decode(errors="replace").rstrip()
        if isinstance(message, dict):
            listener.received(message)
        elif message not in ("", None):
            listener.noted(str(message))

    def _exit_reason(self) -> str:
        try:
            code = self._process.wait(self._limits.stop_seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return "the plugin closed its stdout"
        self._readers[1].join(self._limits.stop_seconds)
        return f"the plugin exited with code {code}" if code >= 0 else f"the plugin was killed by signal {-code}"

    def _read_stderr(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None  # noqa: S101 - Popen was given PIPE
        for line in stderr:
            self._stderr.append(line.decode(errors="replace").rstrip())
