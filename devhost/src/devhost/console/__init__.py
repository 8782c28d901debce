"""The console: a local page on which a person runs agents, looks into the runs, changes one thing and tries again.

It starts the commands of devhost as processes, and reads what they wrote.
"""
