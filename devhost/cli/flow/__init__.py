"""The command `flow`, with its options.

In: what a person types. Out: a flow, played.
"""
