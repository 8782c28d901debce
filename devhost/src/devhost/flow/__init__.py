"""Plays whole chatflows and workflows, as Dify exports them.

Only `flow.engine` imports Dify's workflow engine, which has its own Python environment (see `flow.turn`).
"""
