"""A run written to a file, message by message, and read again.

The file has JSON lines: a header, then every message in both directions and the end of each run, in the order in
which they came.
"""
