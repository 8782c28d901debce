"""The list of runs: what each was and how it ended, found without reading every trace each time.

In: a folder of runs, and what a person looks for. Out: summaries, kept in an index file of the folder; a page of them.
"""
