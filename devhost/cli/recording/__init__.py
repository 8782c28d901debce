"""The commands that run a traced run again: record and fork.

In: a trace, and options. Out: a case as a file; a second run, and what is different in it.
"""
