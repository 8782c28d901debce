"""A traced run once more, with something changed from a round on.

In: a run of a trace, and how many of its rounds stay as they were. Out: the model and the tools of a second run: the
past comes from the trace, what follows from it too, or from another model and from tools that run.
"""
