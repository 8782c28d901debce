"""The tables, how a database gets them, and the rows in them.

A module imports only modules to its left: `models → migrating, repositories, samples`.
"""
