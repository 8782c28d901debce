"""What a command asks for: an example or a script, a strategy, its parameters and tools.

In: the values of command-line options. Out: a `Scenario`, or a `ParameterError` before any process starts.
"""
