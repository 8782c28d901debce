"""A running plugin that serves many sessions at once, over any of the transports."""

import contextlib
import re
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Self, TypedDict, Unpack

from rich.text import Text

from devhost.errors import HostError, InvocationError, PluginLostError, PluginStartError, WireError
from devhost.golang import remarshalled
from devhost.limits import HostLimits
from devhost.node.outputs.run import CRASHED, RunError, printed_error
from devhost.plugin.declaration import PluginDeclaration
from devhost.process.program import LONGEST_READ, Transport, TransportName
from devhost.process.serverless import HttpTransport
from devhost.process.session import QueuePlaces, Session, Stop, Watcher
from devhost.process.transports import StdioTransport, TcpTransport
from devhost.protocol.wire import Failed, JsonObject, Lost, read_session_event, request_envelope
from devhost.text import Secrets, json_or

LONGEST = 2_000
"""The maximum number of characters shown of one line."""
MOST = 400
"""The maximum number of lines shown in one run."""
_OF_THE_SDK = re.compile(
    r"Installed (?:tool|model|endpoint|agent|trigger provider): "
    r"| *\* (?:Serving Flask app |Running on http|Server Worker: )"
    r'|127\.0\.0\.1 - - \[[^\]]*\] "(?:GET /health|POST /invoke)\b'
)
"""Lines that the SDK itself prints when it starts and when it serves HTTP, and that are not shown."""


class PrintedLines:
    """The printed lines of a plugin, without escape sequences and secrets.

    The length of a line and the number of lines are limited.

    The class is thread-safe.
    """

    def __init__(self, told: Callable[[str], None]) -> None:
        self.kept: deque[str] = deque(maxlen=200)
        """The last lines, for error messages."""
        self._told = told
        self._secrets = Secrets()
        self._count = 0
        self._adding = threading.Lock()

    def hide(self, secrets: Secrets) -> None:
        self._secrets = secrets.line_by_line()

    def masked(self, text: str) -> str:
        return self._secrets.masked(text)

    def add(self, line: str) -> None:
        line = record_text(line)
        if _OF_THE_SDK.match(line):
            return
        with self._adding:
            self._count += 1
            if self._count <= MOST:
                # Escape sequences are removed first. Secrets are masked before the line is cut, so no part remains.
                text = self.masked(Text.from_ansi(line[:LONGEST_READ].replace("\n", " ")).plain)
                if len(text) <= LONGEST:
                    shown = text
                else:
                    shown = f"{text[:LONGEST]}…"
            elif self._count == MOST + 1:
                shown = f"… further lines of this run are left out, after {MOST}"
            else:
                return
            self.kept.append(shown)
            self._told(shown)

    def renew(self) -> None:
        """Resets the count of lines when a run starts or ends."""
        with self._adding:
            self._count = 0


def record_text(line: str) -> str:
    """Returns the text of a record of the SDK's logger, which writes JSON. Other lines are returned unchanged."""
    if not line.startswith("{") or len(line) > LONGEST_READ:
        return line
    match json_or(line, None):
        case {"event": "log", "data": {"message": str(message), **record}}:
            level = str(record.get("level") or "INFO")
            if level == "INFO":
                return message
            return f"{level}: {message}"
    return line


TRANSPORTS: Mapping[TransportName, type[Transport]] = {
    "stdio": StdioTransport,
    "tcp": TcpTransport,
    "http": HttpTransport,
}


class StartOptions(TypedDict, total=False):
    transport: TransportName
    limits: HostLimits
    python: str
    installs: bool
    """Whether a .venv is created for a plugin that lacks one; see `devhost.process.environment`."""
    watcher: Watcher
    secrets: Secrets
    """Secrets that are masked in the plugin's printed lines."""
    stop: Stop
    """A stop that can end the plugin while it starts."""


def _faults_of_code(directory: Path, *rules: str) -> Iterator[str]:
    """Yields a sentence for each violation of these rules that `devhost check` finds in the plugin's Python files."""
    from devhost.plugin.check import check_plugin  # noqa: PLC0415 - only needed for a plugin that failed

    with contextlib.suppress(HostError):
        for each in check_plugin(directory).refusals:
            if each.rule in rules:
                yield ": ".join(filter(None, (each.file, each.key, each.sentence)))


class PluginProcess:
    """A running plugin that can serve many sessions at once."""

    def __init__(self, transport: Transport, watcher: Watcher) -> None:
        self.declaration = transport.plugin
        self.limits = transport.limits
        self.printed = PrintedLines(self._tell)
        self._transport = transport
        self._watcher = watcher
        self._sessions: dict[str, Session] = {}
        self._routing = threading.Lock()
        self.lost: str | None = None
        """The reason why the plugin has ended; `None` while it runs."""
        self._ended_because = ""
        self._last_sign: float | None = None
        """The time of the last sign of life; `None` before the first heartbeat. A serverless plugin sends none."""
        self._served_or_gone = threading.Event()
        self._gone = threading.Event()

    @classmethod
    def start(cls, plugin: Path | PluginDeclaration, **options: Unpack[StartOptions]) -> Self:
        """Starts the plugin and returns once it serves requests.

        Raises `PluginStartError` if the plugin exits or is not ready to serve in time.
        """
        declaration = PluginDeclaration.read(plugin) if isinstance(plugin, Path) else plugin
        python = options.get("python", sys.executable)
        limits = options.get("limits", HostLimits())
        transport = TRANSPORTS[options.get("transport", "stdio")](declaration, python, limits)
        process = cls(transport, options.get("watcher", Watcher()))
        process.printed.hide(options.get("secrets", Secrets()))
        process.launch(options.get("stop"))
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def launch(self, stop: Stop | None = None) -> None:
        try:
            self._transport.start(self)
            if stop is not None:
                stop.ends(self.stop)
            served = self._served_or_gone.wait(self.limits.launch_seconds)
        except BaseException:  # Ctrl-C during the start must not leave the plugin running
            self._transport.stop()
            raise
        if self.lost is not None or not served:
            reason = self._ended_because or f"{self._transport.awaited} within {self.limits.launch_seconds:g} seconds"
            self._transport.stop()
            raise self._not_started(reason)
        threading.Thread(target=self._watch_heartbeat, daemon=True).start()

    def _not_started(self, reason: str) -> PluginStartError:
        """Returns the error for a failed start.

        The plugin's printed lines are only a note on the error, because the watcher has already received them.
        """
        directory = self.declaration.directory
        words = "\n".join(self.printed.kept)
        if faults := [*_faults_of_code(directory, "compile", "source", "entrypoint")]:
            reason = "\n".join([*faults, reason])
        elif raised := printed_error(words):
            reason = f"{reason}: {raised.line}"
        error = PluginStartError(f"{directory} did not start: {reason}")
        if words:
            error.add_note(words)
        return error

    def open_session(
        self,
        request: JsonObject,
        conversation_id: str | None = None,
        *,
        serves: str = "",
        places: QueuePlaces | None = None,
    ) -> Session:
        """Sends the request and returns the session that receives the answer.

        `places` limits how many messages may wait in the session. `serves` is the id of another plugin's backwards call
        that the session answers.
        """
        session_id = uuid.uuid4().hex
        session = Session(
            session_id,
            self.declaration,
            self._send,
            self._forget,
            places or QueuePlaces(),
            self._say,
            partial(self._transport.where, [session_id]),
        )
        with self._routing:
            if self.lost is not None:
                raise PluginLostError(self.lost)
            self._sessions[session.id] = session
        if serves:
            self._watcher.serving(session.id, serves)
        try:
            self._send(request_envelope(session.id, remarshalled(request), conversation_id))
        except PluginLostError:
            self._forget(session.id)
            raise
        return session

    def stop(self) -> None:
        self._transport.stop()
        self.printed.renew()

    def received(self, message: JsonObject, /) -> None:
        self._lived()
        self._watcher.crossed("plugin", self.declaration.manifest.name, message)
        match message:
            case {"event": "heartbeat"}:
                self._last_sign = time.monotonic()
                self.served()
            case {"event": "session", "session_id": str(session_id), "data": data}:
                self._route(session_id, data)

    def served(self) -> None:
        self._served_or_gone.set()

    def noted(self, line: str, /) -> None:
        self._lived()
        self.printed.add(line)

    def closed(self, reason: str, /) -> None:
        words = self.printed.masked("\n".join(self._transport.stderr))
        told = f"{reason}\n{words}".rstrip("\n")
        if (raised := printed_error(words)) and ("exited with" in reason or raised.kind == CRASHED):
            told = f"{reason}: {raised.line}"  # the traceback was already printed
        with self._routing:
            self._ended_because = reason
            self.lost = told
            sessions = list(self._sessions.values())
        for session in sessions:
            session.deliver(Lost(self.lost))
        self._gone.set()
        self._served_or_gone.set()

    def _send(self, envelope: JsonObject) -> None:
        # The watcher comes first, so that an answer is never recorded before its request.
        self._watcher.crossed("host", self.declaration.manifest.name, envelope)
        self._transport.send(envelope)

    def _route(self, session_id: str, data: object) -> None:
        with self._routing:
            session = self._sessions.get(session_id)
        if session is None:
            return  # the session has ended; the daemon drops the message, too
        try:
            event = read_session_event(data)
        except WireError as error:
            self.printed.add(str(error))
            return
        if isinstance(event, Failed) and event.args and not RunError.of(InvocationError(*astuple(event))).place:
            # The SDK failed on a value that the plugin's code returned.
            faults = [*_faults_of_code(self.declaration.directory, "yield")]
            if not faults and " for SessionMessage" in event.message:
                faults = ["_invoke yields what is not a message: write yield self.create_text_message(…)"]
            for fault in faults:
                self._say(fault)
        session.deliver(event)

    def _say(self, sentence: str) -> None:
        """Adds a sentence of devhost about the plugin to its printed lines."""
        self.printed.add(f"devhost: {sentence}")

    def _tell(self, line: str) -> None:
        self._watcher.printed(self.declaration.manifest.name, line)

    def _forget(self, session_id: str) -> None:
        with self._routing, contextlib.suppress(KeyError):
            del self._sessions[session_id]
        self._transport.hang_up(session_id)

    def _lived(self) -> None:
        """Records a sign of life. Every message and every printed line of the plugin counts as one."""
        if self._last_sign is not None:
            self._last_sign = time.monotonic()

    def _watch_heartbeat(self) -> None:
        while not self._gone.wait(self.limits.heartbeat_seconds):
            self._look_for_life()

    def _look_for_life(self) -> None:
        limit = self.limits.heartbeat_seconds
        last = self._last_sign
        if last is not None and time.monotonic() - last > limit:
            with self._routing:
                open_sessions = list(self._sessions)
            if open_sessions:
                self._say(f"no sign of life for {limit:g} s: {self._transport.where(open_sessions)}")
            self._transport.kill(f"no sign of life for {limit:g} seconds: the daemon kills the plugin for that")
