"""A conversation with a chatflow, turn by turn.

In: what a person types, or a script's turns. Out: the events of each turn, and what it leaves to the next.
"""
