"""The command `eval`.

In: the command line, and a file of cases. Out: the results in a file, tables and reports, and an exit code.
"""
