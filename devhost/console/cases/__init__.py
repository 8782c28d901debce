"""A run that is kept as a case.

In: a trace, what a form holds. Out: a case more in a file of cases, and its script beside it.
"""
