"""Texts as the index knows them: files → documents with passages → terms → scores. It knows no database.

A module imports only modules to its left: `terms, markdown → folder → scoring`.
"""
