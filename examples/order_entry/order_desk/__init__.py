"""A small back end around the agent: it keeps the messages and their data, and runs the agents through devhost.

Not part of the plugin. A module imports only modules to its left: `messages → context, pending, store, agents →
desk → opening, shown → commands`.
"""
