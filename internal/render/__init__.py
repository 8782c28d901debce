"""Writes events out as messages that Dify understands.

In: the events of a run. Out: text, log rows, files, variables and the last JSON, in the sizes and at the pace that the
host takes. Nothing else builds a message.
"""
