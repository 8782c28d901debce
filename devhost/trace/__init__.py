"""A run written to a file, message by message, and read again.

In: what a `Watcher` is told. Out: a file of JSON lines (`lines`): a header, then every message in both directions and
the end of each run, in the order in which they came. `writer` writes it during the run; `reader` reads it, `runs`,
`calls`, `timeline` and `outcome` say what happened in it.
"""
