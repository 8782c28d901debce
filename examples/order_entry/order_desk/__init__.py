"""A small back end around the agent: it keeps conversations, and runs the agents through devhost.

Not part of the plugin. A module imports only modules to its left: `messages, order_system_server → agents → desk →
commands`.
"""
