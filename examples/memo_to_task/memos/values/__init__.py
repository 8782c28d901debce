"""What the words mean, without a database.

A module imports only modules to its left: `status, due_dates → schemas, results → stored → rules`.
"""
