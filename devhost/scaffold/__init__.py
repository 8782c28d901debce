"""A new plugin's folder: a strategy or a tool that runs, with a scenario and a test.

In: a kind, a name and an author. Out: files that `devhost check` accepts and `devhost run` runs.
"""
