"""The node's tools as the model sees them.

In: Dify's declarations of tools, and the allow-list. Out: a toolbox with unique names, JSON Schema parameters, and the
way back from a name to a tool. Virtual tools, which take an answer or a plan, are tools like any other.
"""
