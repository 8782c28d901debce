"""`python -m examples.answers`: the commands, and the agent as the generator of answers. Not part of the plugin.

A module imports only modules to its left: `prompt, scripted → agent, output → commands`.
"""
