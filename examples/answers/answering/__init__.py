"""Answers from a folder of documents, with their sources.

In: Markdown files, and questions. Out: an index, the passages that fit a question, and answers that are kept. A package
imports only packages to its left, and `services`, which puts them together, imports all:
`domain → index → application → storage → services`. The application names what it needs of storage as protocols.
"""
