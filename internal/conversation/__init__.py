"""What is sent to the model.

In: the node's history, query, context and files, then each round's turn and results. Out: the messages of the next
request, which only grow and fit into the context window and into one line to the host.
"""
