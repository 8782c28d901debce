"""The model whose answers are written down.

In: a script file. Out: the script for one strategy, and a model that answers each call with one of its turns.
"""
