"""The seam between a plugin and the way it is run.

A transport carries whole JSON objects both ways and knows nothing of sessions. Requests and answers go in through
`send` (told apart by their `event`); all that comes out goes to the listener, from threads of the transport's own.
"""

from typing import Protocol

from devhost.wire import JsonObject


class TransportListener(Protocol):
    def received(self, message: JsonObject, /) -> None:
        """One object from the plugin."""

    def noted(self, line: str, /) -> None:
        """A line that is no message: something the plugin printed."""

    def closed(self, reason: str, /) -> None:
        """Once, when nothing more can come."""


class Transport(Protocol):
    def start(self, listener: TransportListener, /) -> None:
        """Begin to carry; PluginStartError when the plugin cannot even be started."""

    def send(self, envelope: JsonObject, /) -> None:
        """PluginLostError when the plugin has gone."""

    def kill(self, reason: str, /) -> None:
        """End it at once; the listener's `closed` gets the reason."""

    def stop(self) -> None:
        """End it politely, and return when nothing of it is left."""

    def last_words(self) -> str:
        """The end of what the plugin wrote to stderr."""
