"""What every tool of this plugin needs around its own work; written to be copied into another plugin.

In: what a model sent. Out: a small typed result for its next turn, and a row in `run_steps`. Each of our examples has
its own copy, because a Dify package holds only its own folder; a test of the repository keeps the copies equal.
A module imports only modules to its left: `errors → envelope → parsing, address → database → run_steps → recorded_tool,
audit`. Only `recorded_tool` knows Dify.
"""
