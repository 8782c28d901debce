"""The console: a local page on which a person runs agents, looks into the runs, changes one thing and tries again.

In: a folder of traces, and the commands of devhost, which it starts as processes. Out: pages on 127.0.0.1.
"""
