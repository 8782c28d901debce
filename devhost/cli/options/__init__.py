"""Options that several commands have, each group as one value.

In: what a person types. Out: a frozen value with the methods that read it, or a sentence about a mistake.
"""
