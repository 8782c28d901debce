"""A running plugin that serves many sessions at once, over any of the transports.

Routes what comes from the plugin to its sessions; watches its heartbeats; passes on what it prints.
When it ends, every open session gets the reason.
"""

import contextlib
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from devhost.errors import PluginLostError, PluginStartError, WireError
from devhost.limits import HostLimits
from devhost.plugin.declaration import PluginDeclaration
from devhost.process.launches import Launches
from devhost.process.printed import Printed, PrintedLines
from devhost.process.session import Session
from devhost.process.transports.program import PluginProgram
from devhost.process.transports.serverless import HttpTransport
from devhost.process.transports.stdio import StdioTransport
from devhost.process.transports.tcp import TcpTransport
from devhost.process.transports.transport import Transport, TransportName
from devhost.process.watcher import Watcher
from devhost.protocol.golang.values import remarshalled
from devhost.protocol.wire import Failed, JsonObject, Lost, read_session_event, request_envelope
from devhost.text.secrets import Secrets

TRANSPORTS: Mapping[TransportName, type[Transport]] = {
    "stdio": StdioTransport,
    "tcp": TcpTransport,
    "http": HttpTransport,
}


class PluginProcess:
    def __init__(
        self, declaration: PluginDeclaration, transport: Transport, limits: HostLimits, watcher: Watcher
    ) -> None:
        self.declaration = declaration
        self.printed = PrintedLines(self._tell)
        self._transport = transport
        self._watcher = watcher
        self.limits = limits
        self._sessions: dict[str, Session] = {}
        self._routing = threading.Lock()
        self.lost: str | None = None
        """Why it has ended; None while it runs."""
        self._last_sign: float | None = None
        """Of life; None before the first heartbeat, and while no heartbeat can come."""
        self._served_or_gone = threading.Event()
        self._gone = threading.Event()

    @classmethod
    def start(  # noqa: PLR0913 - a plugin's options, by keyword
        cls,
        directory: Path,
        launches: Launches | None = None,
        *,
        transport: TransportName = "stdio",
        limits: HostLimits | None = None,
        python: str = sys.executable,
        watcher: Watcher | None = None,
        secrets: Secrets | None = None,
    ) -> Self:
        """Returns when the plugin serves. `secrets` are hidden in what it prints; `launches` can end it meanwhile."""
        limits = limits or HostLimits()
        declaration = PluginDeclaration.read(directory)
        entrypoint = declaration.manifest.meta.runner.entrypoint
        program = PluginProgram(declaration.directory, entrypoint, python, limits.stop_seconds)
        plugin = cls(declaration, TRANSPORTS[transport](program, limits), limits, watcher or Watcher())
        plugin.printed.hide(secrets or Secrets())
        plugin.launch(launches)
        return plugin

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def launch(self, launches: Launches | None = None) -> None:
        self._transport.start(self)
        try:
            if launches is not None:
                launches.add(self)
            served = self._served_or_gone.wait(self.limits.launch_seconds)
        except BaseException:  # Ctrl-C while it starts must not leave it behind
            self._transport.stop()
            raise
        if self.lost is not None or not served:
            silent = f"{self._transport.awaited} within {self.limits.launch_seconds:g} seconds"
            reason = self.lost or self._with_last_words("\n".join([silent, *self.printed.kept]))
            self._transport.stop()
            raise PluginStartError(f"{self.declaration.directory} did not start: {reason}")
        threading.Thread(target=self._watch_heartbeat, daemon=True).start()

    def open_session(self, request: JsonObject, conversation_id: str | None = None, *, serves: str = "") -> Session:
        """Sends the request; what comes back is in the session.

        `serves` is the id of the backwards call of another plugin that the session answers, if it does.
        """
        places = self.limits.burst_messages
        session = Session(uuid.uuid4().hex, self.declaration, self._send, self._forget, places=places)
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
        self._watcher.crossed("plugin", self.declaration.manifest.name, message)
        match message:
            case {"event": "heartbeat"}:
                self._last_sign = time.monotonic()
                self.served()
            case {"event": "session", "session_id": str(session_id), "data": data}:
                self._route(session_id, data)

    def introduced(self, declaration: PluginDeclaration, /) -> None:
        self.declaration = declaration

    def served(self) -> None:
        self._served_or_gone.set()

    def noted(self, line: str, /, *, exact: bool = False) -> None:
        self.printed.add(line, exact=exact)

    def lived(self) -> None:
        if self._last_sign is not None:
            self._last_sign = time.monotonic()

    def disconnected(self, reason: str, /) -> None:
        self._last_sign = None
        with self._routing:
            sessions = list(self._sessions.values())
        for session in sessions:
            session.deliver(Failed("ConnectionClosedError", reason))

    def closed(self, reason: str, /) -> None:
        with self._routing:
            if self.lost is not None:
                return
            self.lost = self._with_last_words(reason)
            sessions = list(self._sessions.values())
        for session in sessions:
            session.deliver(Lost(self.lost))
        self._gone.set()
        self._served_or_gone.set()

    def _send(self, envelope: JsonObject) -> None:
        # The watcher first: an answer must not be recorded before its request.
        self._watcher.crossed("host", self.declaration.manifest.name, envelope)
        self._transport.send(envelope)

    def _route(self, session_id: str, data: object) -> None:
        with self._routing:
            session = self._sessions.get(session_id)
        if session is None:
            return  # the session is over: the daemon drops it too
        try:
            session.deliver(read_session_event(data))
        except WireError as error:
            self.printed.add(str(error), exact=True)

    def _tell(self, printed: Printed) -> None:
        self._watcher.printed(self.declaration.manifest.name, printed.text, exact=printed.exact)

    def _forget(self, session_id: str) -> None:
        with self._routing, contextlib.suppress(KeyError):
            del self._sessions[session_id]
        self._transport.hang_up(session_id)

    def _watch_heartbeat(self) -> None:
        while not self._gone.wait(self.limits.heartbeat_seconds):
            self._look_for_life()

    def _look_for_life(self) -> None:
        limit, last = self.limits.heartbeat_seconds, self._last_sign
        if last is not None and time.monotonic() - last > limit:
            self._transport.give_up(f"the plugin gave no sign of life for {limit:g} seconds")

    def _with_last_words(self, reason: str) -> str:
        words = self.printed.masked(self._transport.last_words())
        return f"{reason}\n{words}" if words else reason
