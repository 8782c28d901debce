"""A plugin's own process: how it is started, what is read of it, and how it ends."""

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
"""Bytes of a printed line that are read at once: the rest is a line of its own."""
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
"""Does what `python -m` does, a third faster: Python looks for garbage again and again while imports make objects, of
which few are garbage (the SDK's are about 130,000, so that the first search comes after them, and the others as usual);
gevent, when it patches, reads the entry points of all packages each time, for hooks: its own only warns of a patch that
the SDK does not make, and those of other packages are not called, as they would be in Dify; httpx imports what its own
command needs, such as rich; and pydantic builds the validators of some hundred classes of the SDK, of which a run needs
few. It also tells of two ways to wait for ever, which nothing else would show."""

type TransportName = Literal["stdio", "tcp", "http"]


def read_lines(pipe: IO[bytes]) -> Iterator[str]:
    """To the end of the pipe."""
    for line in iter(partial(pipe.readline, LONGEST_READ), b""):
        yield line.decode(errors="replace").rstrip()


class Listener(Protocol):
    """Hears what comes out of a plugin, from threads of the transport."""

    def served(self) -> None:
        """The plugin takes requests from now on. Over stdio its first heartbeat says so."""

    def received(self, message: JsonObject, /) -> None:
        """One object from the plugin."""

    def noted(self, line: str, /) -> None:
        """A line that is not a message, such as something that the plugin printed."""

    def closed(self, reason: str, /) -> None:
        """The plugin has ended."""


class Transport(ABC):
    """`python -m main` in the plugin's directory, and the way of messages to it and from it.

    It knows nothing of sessions but their ids.
    """

    awaited: ClassVar[str]
    """For error messages: what was missing when the plugin did not serve in time."""

    def __init__(self, plugin: PluginDeclaration, python: str, limits: HostLimits) -> None:
        self.plugin = plugin
        self.limits = limits
        self.killed_because: str | None = None
        self._python = python
        self.stderr: deque[str] = deque(maxlen=40)
        """Its last lines there, for error messages."""
        self._readers: list[threading.Thread] = []

    @abstractmethod
    def start(self, listener: Listener, /) -> None:
        """Start the plugin and the transport; PluginStartError if the process cannot be started."""

    @abstractmethod
    def send(self, envelope: JsonObject, /) -> None:
        """A request, or an answer, told apart by their `event`; PluginLostError if the plugin has ended."""

    def hang_up(self, session_id: str, /) -> None:  # noqa: B027 - most transports do nothing
        """The session is over. The plugin is not told, unless it is serverless: what still comes is dropped."""

    def where(self, session_ids: Collection[str]) -> str:
        """Where the plugin's code is that serves the sessions, as a clause."""
        return self._probe.where(self.process, self.plugin.directory, session_ids)

    def kill(self, reason: str) -> None:
        """At once; the listener hears the reason."""
        self.killed_because = self.killed_because or reason
        self.process.kill()

    def stop(self) -> None:
        """Ask the plugin to end, kill it if it does not, and return when nothing of it is left."""
        if not self._readers:
            return  # it did not start
        self._probe.close()
        self.killed_because = self.killed_because or "the plugin was stopped"
        # The SDK spins on an stdin at its end instead of leaving, so closing the pipe does not stop it.
        self.process.terminate()
        if not self.has_exited(self.limits.stop_seconds):
            self.process.kill()
            self.process.wait()
        for reader in self._readers:
            reader.join(self.limits.stop_seconds)
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

    def _run(self, listener: Listener, environment: Mapping[str, str]) -> None:
        self._listener = listener
        entrypoint = self.plugin.manifest.entrypoint
        self._probe = StackProbe()
        try:
            self.process = subprocess.Popen(
                [self._python, "-c", STARTER, str(self._probe.inherited), entrypoint],
                cwd=self.plugin.directory,
                # UTF-8 as in Dify's containers; an interpreter that crashes says where.
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
        self._readers = [  # in this order: at the end of stdout, stderr is waited for
            threading.Thread(target=self._read_stderr, args=(self.process.stderr,), daemon=True),
            threading.Thread(target=self._read_to_the_end, args=(self.process.stdout,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _kill_unless_it_exits(self, reason: str) -> None:
        """It no longer talks to devhost: it has crashed, or hangs."""
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
        """Where it has no messages, only what the plugin prints."""
        for line in read_lines(stdout):
            self._listener.noted(line)

    def _read_messages(self, stream: IO[bytes], longest: int) -> JsonObject | None:
        """Hands on all lines of the stream, and returns its last message; WireError for a line of more bytes."""
        last = None
        while line := stream.readline(longest):
            if len(line.rstrip(b"\n")) >= longest:  # of a chunked response, readline may give more than it is asked for
                raise WireError(f"a line of more than {longest:,} bytes")
            last = self._deliver(line) or last
        return last

    def _deliver(self, line: bytes) -> JsonObject | None:
        """One line from the plugin: a message, which is returned, something printed, or nothing at all."""
        text = line.decode(errors="replace").rstrip()
        match json_or(text, None):
            case dict() as message if message.get("event") in ("heartbeat", "session"):
                self._listener.received(message)
                return message
            case {"type": "plugin", "plugins": dict()}:  # how the SDK introduces a plugin
                return None
        if text:
            self._listener.noted(text)
            start = text.rfind('{"event"')
            if start > 0 and json_or(text[start:], None) is not None:
                self._listener.noted(LOST)
        return None


def inherited_environment() -> Mapping[str, str]:
    """Without the key and URL of devhost's own model (a URL may contain a password): in Dify no plugin sees them.

    Without PYTHONPATH: in Dify a plugin finds its own modules and the installed ones, and no others.
    The SDK's clients obey proxy settings, and no proxy leads to this machine's own loopback address.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "PYTHONPATH"))}
    direct = {name: ",".join(filter(None, [os.environ.get(name), LOOPBACK])) for name in ("NO_PROXY", "no_proxy")}
    return {**inherited, **direct}
