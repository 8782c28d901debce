"""A whole chatflow or workflow, as Dify exports it, around the Agent node.

In: a DSL file and what a user says. Out: the events of its nodes, and what the flow answers. Only `flow.engine` imports
Dify's workflow engine, which lives in an environment of its own (`flow.environment`).
"""
