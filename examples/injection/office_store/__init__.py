"""The office's documents, mail and settings in one SQLite database, and what all its tools have in common.

A module imports only modules to its left: `store → tool`. Only `tool` knows Dify.
"""
