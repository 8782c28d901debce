"""The office's documents, mail and settings in one SQLite database; knows nothing of Dify.

In: a folder of documents and a directory for the database. Out: documents that are read, and deeds that stay written.
A module imports only modules to its left: `errors → location → seed → store → wording, calls`.
"""
