"""Two runs side by side, with what is different marked.

In: two traced runs. Out: a `Comparison`, and the same in a terminal, as JSON and as an HTML page.
"""
