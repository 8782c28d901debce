"""A user's approval of tool calls, as pure functions over values.

In: calls that wait, and what the user said. Out: the question that the user reads, and which calls are approved.
"""
