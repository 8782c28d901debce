"""A run once more with one thing changed, and two runs beside each other.

In: runs of the folder, and what a form holds. Out: the `Setup` of a fork, or what is wrong in which field; a `Pair`.
"""
