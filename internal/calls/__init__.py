"""The tool calls of one turn: all are checked before any of them runs, and valid calls run in parallel."""
