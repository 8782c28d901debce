"""The console: a local web page to run agents, inspect their runs, and run them again with changes.

The console starts devhost commands as processes and reads the traces that they write.
"""
