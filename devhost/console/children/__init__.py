"""The commands of devhost that the console started, as processes.

In: a run's name and a command's arguments. Out: a `Child`, which can be told, stopped and ended. What a run did is in
its trace; what its command printed is in a file beside it.
"""
