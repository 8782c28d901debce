"""The tool calls of one turn: all are judged before any runs, valid calls run in parallel, and results are read."""
