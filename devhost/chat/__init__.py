"""A conversation with a strategy in a terminal.

In: lines that a person types. Out: runs, and what the commands of the chat show.
"""
