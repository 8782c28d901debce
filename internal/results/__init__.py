"""Reads what a tool sends.

In: one call's messages from the host. Out: the text for the model, files for the user, sources, and the reason of a
failure, all without the node's secrets, which are replaced here because a tool's texts come in here.
"""
