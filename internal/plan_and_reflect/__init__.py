"""The third strategy: plan, subtasks side by side, reflection, one answer.

In: a run. Out: events. Built from the same rounds, loops and calls as the other strategies.
"""
