"""One tool, called directly: without an agent, a model's decision or a script.

In: tool plugins, a tool's name, arguments and files. Out: the tool's messages as Dify passes them on, and what came of
the call.
"""
