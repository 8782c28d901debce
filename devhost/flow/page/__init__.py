"""The trace of a flow as an HTML page.

In: a `Trace` of devhost flow. Out: HTML: the nodes of each turn as rows, and under an Agent node's row its whole run.
"""
