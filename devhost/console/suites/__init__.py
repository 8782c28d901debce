"""Files of cases: which there are, how one is evaluated, and what came of it.

In: the plugin, the folder of runs, what a form holds. Out: the arguments of `devhost eval`; a `Standing` to show.
"""
