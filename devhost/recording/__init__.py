"""A traced run as a script: what the model said, and what the tools answered.

In: a trace, and the files beside it. Out: a script with a section `recorded`, and sentences about what it lacks.
"""
