"""Cases with expectations, run side by side in one host, and compared with an earlier evaluation.

In: a file of cases. Out: a line of JSON for each run, from which an `Evaluation` is made.
"""
