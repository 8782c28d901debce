"""The interface of the three ways to run a plugin, and the plugin's own process."""

import codecs
import contextlib
import json
import os
import re
import select
import socket
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, ClassVar, Final, Literal, Protocol

from devhost.errors import PluginLostError, PluginStartError
from devhost.limits import HostLimits
from devhost.protocol.wire import JsonObject
from devhost.words import counted

# Splits what a plugin prints into lines, in bounded memory. Of a line that is too long comes the beginning and, at its
# end, how much was left out. A line that is not ended is passed on after a short pause.

LONGEST = 16_000
"""Characters of one line that are passed on."""
PAUSE_SECONDS = 0.3
_ENDS = re.compile(r"[\r\n]+")
"""A progress bar ends each of its states with a carriage return."""


class Lines:
    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._begun = ""
        self._left_out = 0

    @property
    def is_open(self) -> bool:
        """Whether a line has begun and is not passed on."""
        return bool(self._begun)

    def feed(self, data: bytes, *, final: bool = False) -> Iterator[str]:
        *ended, open_end = _ENDS.split(self._decode(data, final))
        for piece in ended:
            yield from self._more(piece)
            yield from self._end()
        yield from self._more(open_end)
        if final:
            yield from self._end()

    def pause(self) -> Iterator[str]:
        """Nothing has come for a while: what there is of the open line; its rest is a line of its own."""
        begun, self._begun = self._begun, ""
        if begun.strip():
            yield begun

    def _more(self, piece: str) -> Iterator[str]:
        if self._left_out:
            self._left_out += len(piece)
            return
        self._begun += piece
        if len(self._begun) > LONGEST:
            yield self._begun[:LONGEST]
            self._left_out, self._begun = len(self._begun) - LONGEST, ""

    def _end(self) -> Iterator[str]:
        if self._left_out:
            yield left_out(self._left_out)
            self._left_out = 0
        yield from self.pause()


def left_out(characters: int) -> str:
    return f"… left out: {counted(characters, 'more character')} of this line"


def read_lines(pipe: IO[bytes], printed: Callable[[str], None], came: Callable[[], None] = lambda: None) -> None:
    """Reads to the end of the pipe; `came` is called for all that comes, also in the middle of a line."""
    lines, poll = Lines(), select.poll()
    poll.register(pipe, select.POLLIN)
    while True:
        if not poll.poll(PAUSE_SECONDS * 1000 if lines.is_open else None):
            for line in lines.pause():
                printed(line)
            continue
        data = os.read(pipe.fileno(), 65_536)
        if data:
            came()
        for line in lines.feed(data, final=not data):
            printed(line)
        if not data:
            return


# A plugin's own process: `python -m main` in its directory, with the way it is run in its environment. The transport
# chooses who reads its stdout; the end of its stderr is kept for error messages. When stdout has come to its end the
# process is over, and the reason is passed on.

LOOPBACK = "127.0.0.1"
WITHHELD = ("OPENAI_", "PYTHONPATH")
"""How the names begin of variables that a plugin does not get."""

STARTER = """
import os, runpy, sys
from importlib import metadata
__name__ = "starter"  # Python shows deprecations that are used in __main__
found = metadata.entry_points()
metadata.entry_points = lambda **wanted: found.select(**wanted)
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
sys.path[0] = os.getcwd()
runpy.run_module(sys.argv.pop(), run_name="__main__", alter_sys=True)
"""
"""Does what `python -m` does, a quarter faster: gevent, when it patches, reads the entry points of all packages again
and again; httpx imports what its own command needs, such as rich; and pydantic builds the validators of some hundred
classes of the SDK, of which a run needs few."""

type ReadStdout = Callable[[IO[bytes]], None]
type Ended = Callable[[str], None]


class PluginProgram:
    def __init__(self, directory: Path, entrypoint: str, python: str, stop_seconds: float) -> None:
        self.directory = directory
        self.killed_because: str | None = None
        self._python = python
        self._entrypoint = entrypoint
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
                [self._python, "-c", STARTER, self._entrypoint],
                cwd=self.directory,
                env={**inherited_environment(), "PYTHONUTF8": "1", **environment},  # as in Dify's containers
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


def inherited_environment() -> Mapping[str, str]:
    """Without the key and URL of devhost's own model (a URL may contain a password): in Dify no plugin sees them.

    Without PYTHONPATH: in Dify a plugin finds its own modules and the installed ones, and no others.
    The SDK's clients obey proxy settings, and no proxy leads to this machine's own loopback address.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(WITHHELD)}
    direct = {name: ",".join(filter(None, [os.environ.get(name), LOOPBACK])) for name in ("NO_PROXY", "no_proxy")}
    return {**inherited, **direct}


# The interface of the three ways to run a plugin. A transport carries whole JSON objects both ways and knows nothing of
# sessions but their ids. Requests and answers go in through `send` (told apart by their `event`); all that comes out
# goes to the listener, from threads of its own.

type TransportName = Literal["stdio", "tcp", "http"]


class TransportListener(Protocol):
    def served(self) -> None:
        """The plugin takes requests from now on. Over stdio its first heartbeat says so."""

    def received(self, message: JsonObject, /) -> None:
        """One object from the plugin."""

    def noted(self, line: str, /) -> None:
        """A line that is not a message, such as something that the plugin printed."""

    def lived(self) -> None:
        """A sign of life that is not a message."""

    def disconnected(self, reason: str, /) -> None:
        """The sessions that are open have lost their plugin, which may come back."""

    def closed(self, reason: str, /) -> None:
        """Nothing more can come; only the first reason counts."""


LOST = (
    "devhost: the line above ends in a message of this plugin, which is lost: "
    "what was printed before it has no newline at its end"
)
_MESSAGE = '{"event"'
"""How a message of the SDK begins."""


class Transport(ABC):
    awaited: ClassVar[str]
    """For error messages: what was missing when the plugin did not serve in time."""

    def __init__(self, program: PluginProgram, limits: HostLimits) -> None:
        self._program = program
        self._limits = limits

    @abstractmethod
    def start(self, listener: TransportListener, /) -> None:
        """Start the plugin and the transport; PluginStartError if the process cannot be started."""

    @abstractmethod
    def send(self, envelope: JsonObject, /) -> None:
        """PluginLostError if the plugin has ended."""

    def hang_up(self, session_id: str, /) -> None:  # noqa: B027 - most transports do nothing
        """The session is over. The plugin is not told, unless it is serverless: what still comes is dropped."""

    def give_up(self, reason: str) -> None:
        """Do what the daemon does with a plugin that has been silent for too long."""
        self.kill(f"{reason}: the daemon kills it for that")

    def kill(self, reason: str) -> None:
        """End the plugin at once; the listener's `closed` gets the reason."""
        self._program.kill(reason)

    def stop(self) -> None:
        """Ask the plugin to end, and return when its process is gone."""
        self._program.stop()

    def last_words(self) -> str:
        """The end of what the plugin wrote to stderr."""
        return self._program.last_words()


def deliver(line: bytes, listener: TransportListener) -> None:
    """One line from the plugin: a message, something printed, or nothing at all."""
    text = line.decode(errors="replace").rstrip()
    if not text:
        return
    try:
        message = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        message = None
    match message:
        case {"event": "heartbeat" | "session"}:
            listener.received(message)
        case {"type": "plugin", "plugins": dict()}:
            """The manifest, with which the SDK introduces a plugin."""
        case _:
            listener.noted(text)
            if _ends_in_a_message(text):
                listener.noted(LOST)


def _ends_in_a_message(text: str) -> bool:
    """The SDK writes a message as a line of its own; a print without a newline stands before it on the same line."""
    for start in {text.find(_MESSAGE, 1), text.rfind(_MESSAGE)} - {0, -1}:
        with contextlib.suppress(ValueError, RecursionError):
            return isinstance(json.loads(text[start:], parse_constant=_refuse), dict)
    return False


def _refuse(constant: str) -> None:
    """Go's JSON has no NaN and no Infinity."""
    raise ValueError(f"{constant} is not JSON")


# A port that is chosen before the program that will listen on it: the SDK does not tell which port it got. On Linux it
# is held from its choice on. A socket that is bound and does not listen keeps the kernel from giving the port to anyone
# who asks for a free one, and a server that allows the reuse of addresses, as the SDK's does, may still listen.


class ReservedPort:
    def __init__(self) -> None:
        self._held = socket.socket()
        self._held.bind((LOOPBACK, 0))
        self.number: Final[int] = self._held.getsockname()[1]
        if sys.platform == "linux":
            self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        else:  # two sockets cannot have one port there, so that it is only free a moment ago
            self._held.close()

    def release(self) -> None:
        self._held.close()
