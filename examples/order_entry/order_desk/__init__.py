"""A small back end around the agent: it keeps conversations, and runs the agent through devhost.

Not part of the plugin. A module imports only modules to its left: `sources → conversation,
order_system_server → desk → commands`.
"""
