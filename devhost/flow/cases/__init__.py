"""A flow's script played as a case: every turn beside what it is expected to be.

In: a script, a host, the engine. Out: each turn with a `Check` for each expectation.
"""
