"""What a later run needs to go on from this one.

In: the record of a run. Out: a text that goes into a variable; and, in a later run, the same record from that text.
"""
