"""What a flow adds to a trace, as data.

In: what a flow did. Out: a line for the beginning and the end of each turn, and for what its nodes did.
"""
