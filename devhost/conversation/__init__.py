"""Question after question to one strategy, and what each run leaves to the next.

In: a scenario, questions, a host, a model for each question. Out: a `Run` for each question.
"""
