"""A run's conversation as a person goes on with it: what it waits for, and what can be told.

In: a run's trace, its setup and its child. Out: a `Waiting` for the page, and lines that `devhost chat` reads.
"""
