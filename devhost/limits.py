"""The host's limits, with the values of a self-hosted Dify (dify-plugin-daemon, August 2026)."""

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True)
class HostLimits:
    line_bytes: int = 5 * 1024 * 1024
    """A longer line on a plugin's stdout kills the plugin; over TCP and HTTP there is no such limit."""
    launch_seconds: float = 120
    """The plugin must serve by then: over stdio, its first heartbeat must have come."""
    heartbeat_seconds: float = 120
    """Longer silence kills a plugin that is run locally."""
    debug_heartbeat_seconds: float = 60
    """Longer silence ends the connection of a plugin that is debugged remotely."""
    run_seconds: float = 600
    """One strategy invocation, all in all, in each of the three runtimes; the plugin is not told."""
    call_seconds: float = 240
    """One backwards call, wall clock, streaming included."""
    blob_bytes: int = 15 * 1024 * 1024
    """One file sent in chunks."""
    blob_chunk_bytes: int = 8192
    """One chunk of it."""
    serverless_request_bytes: int = 5 * 1024 * 1024
    """The request that invokes a serverless plugin."""
    transaction_bytes: int = 6 * 1024 * 1024
    """A serverless plugin's request for a backwards call."""
    transaction_heartbeat_seconds: float = 25
    """How often a blank line keeps a silent answer to such a call alive."""
    stop_seconds: float = 5
    """How long a plugin may take to go when asked, before it is killed."""

    def over(self, transport: str) -> Self:
        """The limits of a plugin that is run this way."""
        return replace(self, heartbeat_seconds=self.debug_heartbeat_seconds) if transport == "tcp" else self
