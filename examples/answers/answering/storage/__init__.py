"""Tables and repositories. Whether SQLite or PostgreSQL: `tool_layer` has the database, and the results are the same.

A module imports only modules to its left: `tables → failures, vectors → passages, answers`.
"""
