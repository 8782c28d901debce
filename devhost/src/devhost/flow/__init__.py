"""A whole chatflow or workflow, as Dify exports it, around the Agent node.

Only `flow.engine` imports Dify's workflow engine, which lives in an environment of its own (`flow.turn`).
"""
