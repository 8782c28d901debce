"""Memos, the tasks made of them, and the decisions that say why.

A module imports only modules to its left: `values → decisions, tables → repositories → services, database →
tool_base`. Tools use services, and never see what is in the tables. Only `tool_base` and one tool know Dify.
`migrations` is Alembic's folder.
"""
