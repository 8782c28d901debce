"""What passes between the host, Dify's plugin daemon and a plugin, as pure functions (daemon source of 2026-08-21).

In: JSON values as one side wrote them. Out: the same values as the other side reads them, or the daemon's error. The
daemon decodes everything into structs and encodes it again, with a module for each direction: `requests` (a plugin's
backwards calls), `answers` (what Dify's API replies), `run_messages` and `node_stream` (the messages of a run).
`wire` has the envelopes, `failures` the daemon's errors when the API fails, `bridge` its queue, which loses messages.
"""
