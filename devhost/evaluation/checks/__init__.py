"""What a case expects of its run, and whether the run fits.

In: expectations from a file of cases, and what was observed of a run. Out: a `Check` for each expectation.
"""
