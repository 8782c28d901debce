"""A flow in a trace.

In: the events of a flow. Out: lines of a trace, and from a trace the events again, for the terminal.
"""
