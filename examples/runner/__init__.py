"""Runs every scenario of every example under each strategy that it is for, and looks into the databases afterwards.

In: an example's scripts and its `checks.py`. Out: a table. A module imports only modules to its left:
`world → scenarios → rows → playing, table`.
"""
