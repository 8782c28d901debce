"""The runs of a folder: each is a trace, with what the console knows of it beside it.

In: a folder. Out: its runs by name; a `Setup` says how a run was started.
"""
