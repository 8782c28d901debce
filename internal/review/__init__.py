"""A second look at the answer: a draft is judged by the node's criteria, and written again if it does not meet them.

In: a loop of a run. Out: its events and those of judgements, then the Ending whose answer the user gets.
"""
