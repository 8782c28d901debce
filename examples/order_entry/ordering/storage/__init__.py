"""The database: its tables, what is in them at first, and one repository for each kind of thing.

A repository gets the session of a transaction, and returns values. A module imports only modules to its left:
`tables → seed; tables → items, orders, judgements`.
"""
