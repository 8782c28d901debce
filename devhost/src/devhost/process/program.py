"""A plugin's own process: how it is started, what is read of it, and how it ends."""

import contextlib
import os
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from signal import Signals
from typing import IO

from devhost.errors import PluginLostError, PluginStartError

LOOPBACK = "127.0.0.1"
WITHHELD = ("OPENAI_", "PYTHONPATH")
"""How the names begin of variables that a plugin does not get."""
LONGEST = 16_000
"""Bytes of a printed line that are read at once: the rest is a line of its own."""
LAST_LINES = 40
"""Of stderr, for error messages."""

STARTER = """
import builtins, gc, os, runpy, sys, traceback
from concurrent.futures import Future
from importlib import metadata
usual = gc.get_threshold()
def begin(phase, found):
    gc.callbacks.remove(begin)
    gc.set_threshold(*usual)
gc.callbacks.append(begin)
gc.set_threshold(200_000)
__name__ = "starter"  # Python shows deprecations that are used in __main__
found = metadata.entry_points
def entry_points(**wanted):
    return () if wanted.get("group", "").startswith("gevent.") else found(**wanted)
metadata.entry_points = entry_points
sys.modules["httpx._main"] = None
try:
    from pydantic import BaseModel
except ImportError:
    pass
else:
    made = type(BaseModel).__new__
    def make(kind, name, bases, body, **config):
        if str(body.get("__module__")).startswith("dify_plugin."):
            config.setdefault("defer_build", True)
        return made(kind, name, bases, body, **config)
    type(BaseModel).__new__ = make
failed, asked = Future.set_exception, input
def fail(future, error):
    if isinstance(error, SystemExit):
        frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
        places = [f"{os.path.relpath(file)}:{line}" for file, line in frames if file.startswith(os.getcwd())]
        told = "ends no run: the SDK drops it, and Dify waits. End with Ctrl-C, and raise another exception"
        print(f"devhost: {error!r}, {', '.join(places[-1:])}, {told}", file=sys.stderr, flush=True)
    failed(future, error)
def ask(*prompt):
    builtins.input = asked
    told = "End with Ctrl-C; for breakpoint() there are remote-pdb and debugpy, as docs/debugging.md says"
    print(f"devhost: input cannot come, because stdin carries the protocol. {told}", file=sys.stderr, flush=True)
    return asked(*prompt)
Future.set_exception, builtins.input = fail, ask
sys.path[0] = os.getcwd()
runpy.run_module(sys.argv.pop(), run_name="__main__", alter_sys=True)
"""
"""Does what `python -m` does, a third faster: Python looks for garbage again and again while imports make objects, of
which few are garbage (the SDK's are about 130,000, so that the first search comes after them, and the others as usual);
gevent, when it patches, reads the entry points of all packages each time, for hooks that none of them has; httpx
imports what its own command needs, such as rich; and pydantic builds the validators of some hundred classes of the SDK,
of which a run needs few. It also tells of two ways to wait for ever, which nothing else would show."""

type ReadStdout = Callable[[IO[bytes]], None]
type Told = Callable[[str], None]


def read_lines(pipe: IO[bytes]) -> Iterator[str]:
    """To the end of the pipe."""
    for line in iter(partial(pipe.readline, LONGEST), b""):
        yield line.decode(errors="replace").rstrip()


class PluginProgram:
    """`python -m main` in the plugin's directory."""

    def __init__(self, directory: Path, entrypoint: str, python: str, stop_seconds: float) -> None:
        self.directory = directory
        self.killed_because: str | None = None
        self._python = python
        self._entrypoint = entrypoint
        self._stop_seconds = stop_seconds
        self._stderr: deque[str] = deque(maxlen=LAST_LINES)
        self._readers: list[threading.Thread] = []
        # Its own lock, not one that a reader needs: a write blocks while the pipe is full, and the plugin empties
        # the pipe only while its output is being read.
        self._writing = threading.Lock()

    def start(self, environment: Mapping[str, str], read_stdout: ReadStdout, ended: Told, printed: Told) -> None:
        """`read_stdout` reads to the end of stdout, `printed` gets the lines on stderr, `ended` why it has ended."""
        try:
            self.process = subprocess.Popen(
                [self._python, "-c", STARTER, self._entrypoint],
                cwd=self.directory,
                # UTF-8 as in Dify's containers; an interpreter that crashes says where.
                env={**inherited_environment(), "PYTHONUTF8": "1", "PYTHONFAULTHANDLER": "1", **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,  # Ctrl-C is for devhost, which then stops its plugins itself
            )
        except OSError as error:
            raise PluginStartError(
                f"{self.directory}: {self._python} -m {self._entrypoint} cannot be started: {error}"
            ) from error
        self._readers = [  # in this order: at the end of stdout, stderr is waited for
            threading.Thread(target=self._read_stderr, args=(self.process.stderr, printed), daemon=True),
            threading.Thread(target=self._read_stdout, args=(self.process.stdout, read_stdout, ended), daemon=True),
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

    def kill(self, reason: str) -> None:
        """At once; `ended` gets the reason."""
        self.killed_because = self.killed_because or reason
        self.process.kill()

    def kill_unless_it_exits(self, reason: str) -> None:
        """It no longer talks to devhost: it has crashed, or hangs."""
        if not self.has_exited(self._stop_seconds):
            self.kill(reason)

    def stop(self) -> None:
        """Ask it to end, kill it if it does not, and return when nothing of it is left."""
        if not self._readers:
            return  # it did not start
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

    def last_words(self) -> str:
        """The end of what it wrote to stderr."""
        return "\n".join(self._stderr)

    def _read_stdout(self, stdout: IO[bytes], read_stdout: ReadStdout, ended: Told) -> None:
        read_stdout(stdout)
        self.kill_unless_it_exits("the plugin closed its stdout")
        code = self.process.wait()
        self._readers[0].join(self._stop_seconds)
        if self.killed_because is not None:
            ended(self.killed_because)
        elif code == 0:
            ended("the plugin exited with code 0: its main.py came to its end")
        else:
            ended(f"the plugin {f'exited with code {code}' if code > 0 else f'was killed by {Signals(-code).name}'}")

    def _read_stderr(self, stderr: IO[bytes], printed: Told) -> None:
        for line in read_lines(stderr):
            self._stderr.append(line)
            printed(line)


def inherited_environment() -> Mapping[str, str]:
    """Without the key and URL of devhost's own model (a URL may contain a password): in Dify no plugin sees them.

    Without PYTHONPATH: in Dify a plugin finds its own modules and the installed ones, and no others.
    The SDK's clients obey proxy settings, and no proxy leads to this machine's own loopback address.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(WITHHELD)}
    direct = {name: ",".join(filter(None, [os.environ.get(name), LOOPBACK])) for name in ("NO_PROXY", "no_proxy")}
    return {**inherited, **direct}
