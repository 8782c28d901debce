"""A run written down, message by message, and read again.

A trace is a file of JSON lines (`lines.py`): what was run; then every message both ways and what came of each run, in
the order of their coming. `writer.py` writes it while it happens; `reader.py` reads it, `runs.py` finds the runs in it.
"""
