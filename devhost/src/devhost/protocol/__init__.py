"""The protocol between the host, Dify's plugin daemon and a plugin, as pure functions (daemon source of 2026-08-21)."""
