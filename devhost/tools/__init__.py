"""The tools that an agent can use: those of tool plugins, and Python functions.

In: a tool plugin's declaration with credentials and fixed values, or a function. Out: the entities that Dify sends to a
strategy, and the messages that a call produces.
"""
