"""What a flow's script expects of a turn, in the words of `devhost.evaluation`.

In: plain data. Out: checked, frozen expectations, and a `Check` for each one of a value.
"""
