"""The tool calls of one turn.

In: calls as the model wrote them. Each is judged (valid or rejected) before any runs; valid ones run side by side. Out:
one result per call, in the model's order, appended to the transcript.
"""
