"""Order requests as values, and pure functions over them: no database, no network, no clock.

A module imports only modules to its left: `payload → transforms → rules; folding → matching`.
"""
