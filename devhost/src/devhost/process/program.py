"""The process of a plugin: its start, the reading of its output, and its end."""

import contextlib
import os
import subprocess
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from signal import Signals
from typing import IO, ClassVar, Literal, Protocol

from devhost.errors import PluginStartError, WireError
from devhost.limits import HostLimits
from devhost.plugin.declaration import PluginDeclaration
from devhost.process.stacks import PROBE, StackProbe
from devhost.protocol.wire import JsonObject
from devhost.text import json_or

LOOPBACK = "127.0.0.1"
LONGEST_READ = 16_000
"""The maximum number of bytes that are read from a printed line. The rest is treated as another line."""
LOST = (
    "devhost: the line above ends in a message of this plugin, which is lost: "
    "what was printed before it has no newline at its end"
)

STARTER = (
    PROBE
    + """
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
if len(sys.argv) > 2:
    probe(int(sys.argv.pop(1)))
sys.path[0] = os.getcwd()
runpy.run_module(sys.argv.pop(), run_name="__main__", alter_sys=True)
"""
)
"""Runs a module as `python -m` does, a third faster, and reports two mistakes that would otherwise hang silently.

Imports create many objects, of which few are garbage, and Python searches for garbage again and again. The SDK creates
about 130,000 objects, so the first search is delayed until after them; later searches run as usual.

When gevent patches, it reads the entry points of all packages for hooks each time. gevent's own hook only warns of a
patch that the SDK does not make. The hooks of other packages are not called here, unlike in Dify.

httpx imports the dependencies of its command line, such as rich. pydantic would build validators for about a hundred
SDK classes, of which a run needs few. They are built on demand instead.

The reported mistakes are a plugin that raises `SystemExit` and a plugin that reads `input`.
"""

type TransportName = Literal["stdio", "tcp", "http"]


def read_lines(pipe: IO[bytes]) -> Iterator[str]:
    """Yields the lines of the pipe until its end."""
    for line in iter(partial(pipe.readline, LONGEST_READ), b""):
        yield line.decode(errors="replace").rstrip()


class Listener(Protocol):
    """Receives the output of a plugin. The threads of the transport call its methods."""

    def served(self) -> None:
        """Called when the plugin starts to accept requests. Over stdio this is its first heartbeat."""

    def received(self, message: JsonObject, /) -> None:
        """Called with each message of the plugin."""

    def noted(self, line: str, /) -> None:
        """Called with each line that is not a message, such as a line that the plugin printed."""

    def closed(self, reason: str, /) -> None:
        """Called when the plugin has ended."""


class Transport(ABC):
    """Runs `python -m main` in the plugin's directory and exchanges messages with it.

    A transport knows only the ids of sessions.
    """

    awaited: ClassVar[str]
    """Part of an error message that says what is missing if the plugin does not serve in time."""

    def __init__(self, plugin: PluginDeclaration, python: str, limits: HostLimits) -> None:
        self.plugin = plugin
        self.limits = limits
        self.killed_because: str | None = None
        self._python = python
        self.stderr: deque[str] = deque(maxlen=40)
        """The last lines of the plugin's stderr, for error messages."""
        self._readers: list[threading.Thread] = []

    @abstractmethod
    def start(self, listener: Listener, /) -> None:
        """Starts the plugin and the transport. Raises `PluginStartError` if the process cannot be started."""

    @abstractmethod
    def send(self, envelope: JsonObject, /) -> None:
        """Sends a request or an answer; `event` says which it is. Raises `PluginLostError` if the plugin has ended."""

    def hang_up(self, session_id: str, /) -> None:  # noqa: B027 - most transports do nothing
        """Ends a session. Only a serverless plugin is notified; later messages of the session are dropped."""

    def where(self, session_ids: Collection[str]) -> str:
        """Returns, as a clause, the position of the plugin's code that serves the sessions."""
        return self._probe.where(self.process, self.plugin.directory, session_ids)

    def kill(self, reason: str) -> None:
        """Kills the plugin at once. The listener receives the reason."""
        self.killed_because = self.killed_because or reason
        self.process.kill()

    def stop(self) -> None:
        """Terminates the plugin, kills it if it does not exit, and returns when its process and readers have ended."""
        if not self._readers:
            return  # it did not start
        self._probe.close()
        self.killed_because = self.killed_because or "the plugin was stopped"
        # At the end of stdin the SDK loops instead of exiting, so closing the pipe does not stop it.
        self.process.terminate()
        if not self.has_exited(self.limits.stop_seconds):
            self.process.kill()
            self.process.wait()
        for reader in self._readers:
            reader.join(self.limits.stop_seconds)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):  # the rest of stdin's buffer can no longer be delivered
                    pipe.close()

    def has_exited(self, within_seconds: float) -> bool:
        try:
            self.process.wait(within_seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _run(self, listener: Listener, environment: Mapping[str, str]) -> None:
        self._listener = listener
        entrypoint = self.plugin.manifest.entrypoint
        self._probe = StackProbe()
        try:
            self.process = subprocess.Popen(
                [self._python, "-c", STARTER, str(self._probe.inherited), entrypoint],
                cwd=self.plugin.directory,
                # UTF-8 is used, as in Dify's containers. A crashing interpreter reports its position.
                env={**inherited_environment(), "PYTHONUTF8": "1", "PYTHONFAULTHANDLER": "1", **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,  # Ctrl-C is for devhost, which then stops its plugins itself
                pass_fds=[self._probe.inherited],
            )
        except OSError as error:
            self._probe.close()
            raise PluginStartError(
                f"{self.plugin.directory}: {self._python} -m {entrypoint} cannot be started: {error}"
            ) from error
        self._probe.has_started()
        self._readers = [  # stderr comes first: the reader of stdout joins it at the end
            threading.Thread(target=self._read_stderr, args=(self.process.stderr,), daemon=True),
            threading.Thread(target=self._read_to_the_end, args=(self.process.stdout,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _kill_unless_it_exits(self, reason: str) -> None:
        """Kills a plugin that has closed its connection, unless it exits by itself: it has crashed or hangs."""
        if not self.has_exited(self.limits.stop_seconds):
            self.kill(reason)

    def _read_stderr(self, stderr: IO[bytes]) -> None:
        for line in read_lines(stderr):
            self.stderr.append(line)
            self._listener.noted(line)

    def _read_to_the_end(self, stdout: IO[bytes]) -> None:
        self._read_stdout(stdout)
        self._kill_unless_it_exits("the plugin closed its stdout")
        code = self.process.wait()
        self._readers[0].join(self.limits.stop_seconds)
        if self.killed_because is not None:
            self._listener.closed(self.killed_because)
        elif code == 0:
            self._listener.closed("the plugin exited with code 0: its main.py came to its end")
        else:
            if code > 0:
                how = f"exited with code {code}"
            else:
                how = f"was killed by {Signals(-code).name}"
            self._listener.closed(f"the plugin {how}")

    def _read_stdout(self, stdout: IO[bytes]) -> None:
        """Reads printed lines from the plugin's stdout. Transports whose messages come over stdout override this."""
        for line in read_lines(stdout):
            self._listener.noted(line)

    def _read_messages(self, stream: IO[bytes], longest: int) -> JsonObject | None:
        """Delivers all lines of the stream and returns the last message.

        Raises `WireError` for a line of `longest` bytes or more.
        """
        last = None
        while line := stream.readline(longest):
            if len(line.rstrip(b"\n")) >= longest:  # readline of a chunked response may exceed its limit
                raise WireError(f"a line of more than {longest:,} bytes")
            last = self._deliver(line) or last
        return last

    def _deliver(self, line: bytes) -> JsonObject | None:
        """Delivers one line of the plugin: a message, which is returned, or a printed line. Empty lines are skipped."""
        text = line.decode(errors="replace").rstrip()
        match json_or(text, None):
            case dict() as message if message.get("event") in ("heartbeat", "session"):
                self._listener.received(message)
                return message
            case {"type": "plugin", "plugins": dict()}:  # the SDK's announcement of the plugin
                return None
        if text:
            self._listener.noted(text)
            start = text.rfind('{"event"')
            if start > 0 and json_or(text[start:], None) is not None:
                self._listener.noted(LOST)
        return None


def inherited_environment() -> Mapping[str, str]:
    """Returns the environment variables that a plugin inherits.

    The key and URL of devhost's own model are removed (a URL may contain a password), because no plugin in Dify sees
    them. PYTHONPATH is removed, because a plugin in Dify finds only its own modules and the installed ones. The
    loopback address is exempt from proxies, because the SDK's clients obey proxy settings and no proxy can reach it.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "PYTHONPATH"))}
    direct = {name: ",".join(filter(None, [os.environ.get(name), LOOPBACK])) for name in ("NO_PROXY", "no_proxy")}
    return {**inherited, **direct}
