"""The host's limits, with the values of a self-hosted Dify (dify-plugin-daemon, August 2026)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class HostLimits:
    line_bytes: int = 5 * 1024 * 1024
    """A longer line on a plugin's stdout kills the plugin."""
    launch_seconds: float = 120
    """The first heartbeat must have come by then."""
    heartbeat_seconds: float = 120
    """Longer silence kills the plugin."""
    run_seconds: float = 600
    """One strategy invocation, all in all; the plugin is not told."""
    call_seconds: float = 240
    """One backwards call, wall clock, streaming included."""
    blob_bytes: int = 15 * 1024 * 1024
    """One file sent in chunks."""
    blob_chunk_bytes: int = 8192
    """One chunk of it."""
    stop_seconds: float = 5
    """How long a plugin may take to go when asked, before it is killed."""
