"""What a flow may do on this machine besides calling tools: send HTTP requests, and run the code of its file.

In: what a person allows. Out: the nodes that need more, and code that runs in a process of its own.
"""
