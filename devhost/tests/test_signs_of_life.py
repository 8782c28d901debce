"""What counts as a sign of life of a plugin, and which sessions are answered; over a transport that a test controls."""

import io
import os
from types import SimpleNamespace

import pytest

from devhost.errors import PluginStartError
from devhost.limits import HostLimits
from devhost.plugin.declaration import PluginDeclaration
from devhost.process import plugin_process
from devhost.process.plugin_process import PluginProcess
from devhost.process.session import Session, Watcher
from devhost.process.transports.streams import StdioTransport
from devhost.process.transports.transport import PluginProgram, Transport, TransportListener
from devhost.protocol.wire import JsonObject
from support.plugins import PUPPET
from support.waiting import MovableClock


class HeldLine(Transport):
    """Keeps what is sent, and why it was given up."""

    def __init__(self) -> None:
        super().__init__(PluginProgram(PUPPET, "main", "python", 1), HostLimits())
        self.sent: list[JsonObject] = []
        self.given_up: list[str] = []

    def start(self, listener: TransportListener, /) -> None:
        """The test itself plays the plugin."""

    def send(self, envelope: JsonObject, /) -> None:
        self.sent.append(envelope)

    def hang_up(self, session_id: str, /) -> None:
        """The plugin is not told."""

    def give_up(self, reason: str) -> None:
        self.given_up.append(reason)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> MovableClock:
    return MovableClock(monkeypatch, plugin_process)


def on_a_line() -> tuple[PluginProcess, HeldLine]:
    line = HeldLine()
    return PluginProcess(PluginDeclaration.read(PUPPET), line, HostLimits(), Watcher()), line


def test_a_silent_plugin_is_given_up_and_any_output_counts(now: MovableClock) -> None:
    plugin, line = on_a_line()
    plugin.received({"event": "heartbeat", "data": {}})
    now.move(59)
    plugin.lived()
    now.move(59)
    plugin._look_for_life()
    assert line.given_up == []
    now.move(2)
    plugin._look_for_life()
    assert line.given_up == ["the plugin gave no sign of life for 60 seconds"]


def test_before_its_first_heartbeat_a_plugin_is_not_looked_at(now: MovableClock) -> None:
    plugin, line = on_a_line()
    plugin.lived()
    now.move(1_000)
    plugin._look_for_life()
    assert line.given_up == []


class Printing(HeldLine):
    """Never serves."""

    awaited = "no heartbeat came"

    def start(self, listener: TransportListener, /) -> None:
        listener.noted("warming up")

    def stop(self) -> None:
        """Nothing was started."""


def test_what_a_plugin_printed_is_in_the_error_when_it_does_not_serve() -> None:
    plugin = PluginProcess(PluginDeclaration.read(PUPPET), Printing(), HostLimits(launch_seconds=0.01), Watcher())
    with pytest.raises(PluginStartError, match=r"no heartbeat came within 0\.01 seconds\nwarming up$"):
        plugin.launch()


class Heard:
    """A listener that counts signs of life."""

    lives = 0

    def lived(self) -> None:
        self.lives += 1

    def received(self, _: JsonObject) -> None: ...
    def noted(self, _: str) -> None: ...


def test_each_line_of_a_local_plugin_is_a_sign_of_life() -> None:
    heard = Heard()
    program = PluginProgram(PUPPET, "main", "python", 1)
    StdioTransport(program, HostLimits())._read(io.BytesIO(b"printed\n{}\n"), heard)  # type: ignore[arg-type] # of a listener, what is called
    assert heard.lives == 2
    end, beginning = os.pipe()
    os.write(beginning, b"not even a whole line")
    os.close(beginning)
    program.lived = heard.lived
    with os.fdopen(end, "rb") as stderr:
        program.process = SimpleNamespace(stderr=stderr)  # type: ignore[assignment] # what is read of it
        program._read_stderr(heard.noted)
    assert heard.lives == 3


def test_a_call_of_a_session_that_has_ended_is_answered_with_nothing() -> None:
    plugin, line = on_a_line()
    with plugin.open_session({}) as session:
        assert isinstance(session, Session)
    asked = {"type": "invoke", "data": {"type": "llm", "backwards_request_id": "r", "request": {}}}
    plugin.received({"event": "session", "session_id": session.id, "data": asked})
    assert [envelope["event"] for envelope in line.sent] == ["request"]
