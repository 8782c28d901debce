"""The tools that an agent can use: those of tool plugins, and Python functions."""
