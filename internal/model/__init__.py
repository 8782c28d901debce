"""One model turn.

In: a transcript and the tools. Out: events while the model streams, then a ModelTurn: text, thoughts, calls, usage.
A failed call is retried here.
"""
