"""What passes between the host, Dify's plugin daemon and a plugin, as pure functions (daemon source of 2026-08-21).

The daemon decodes everything into structs and encodes it again, with a module for each direction: `requests` (a
plugin's backwards calls), `answers` (what Dify's API replies), `node_stream` (the messages of a run). `wire` has the
envelopes and the queue, which loses messages; `failures` the daemon's errors when the API fails.
"""
