"""The interface of the three ways to run a plugin.

A transport carries whole JSON objects both ways and knows nothing of sessions but their ids. Requests and answers go
in through `send` (told apart by their `event`); all that comes out goes to the listener, from threads of its own.
"""

import json
from abc import ABC, abstractmethod
from typing import ClassVar, Literal, Protocol

from devhost.limits import HostLimits
from devhost.plugin.declaration import PluginDeclaration
from devhost.process.transports.program import PluginProgram
from devhost.protocol.wire import JsonObject

type TransportName = Literal["stdio", "tcp", "http"]


class TransportListener(Protocol):
    @property
    def declaration(self) -> PluginDeclaration:
        """The declaration in the plugin's YAML files."""

    def introduced(self, declaration: PluginDeclaration, /) -> None:
        """The declaration that the plugin sent; it replaces that of the files."""

    def served(self) -> None:
        """The plugin takes requests from now on. Over stdio its first heartbeat says so."""

    def received(self, message: JsonObject, /) -> None:
        """One object from the plugin."""

    def noted(self, line: str, /, *, exact: bool = False) -> None:
        """A line that is not a message, such as something that the plugin printed.

        `exact`: it came among the messages, so that it is known which came before it.
        """

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

    @abstractmethod
    def hang_up(self, session_id: str, /) -> None:
        """The session is over; what still comes for it is dropped."""

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
            listener.noted(text, exact=True)
            if _ends_in_a_message(text):
                listener.noted(LOST, exact=True)


def _ends_in_a_message(text: str) -> bool:
    """The SDK writes a message as a line of its own; a print without a newline stands before it on the same line."""
    return any(start > 0 and _is_message(text[start:]) for start in {text.find(_MESSAGE, 1), text.rfind(_MESSAGE)})


def _is_message(text: str) -> bool:
    try:
        return isinstance(json.loads(text, parse_constant=_refuse), dict)
    except (ValueError, RecursionError):
        return False


def _refuse(constant: str) -> None:
    """Go's JSON has no NaN and no Infinity."""
    raise ValueError(f"{constant} is not JSON")
