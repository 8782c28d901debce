"""What a person or a program sees of a flow: the answer as it streams, the nodes as rows, and one JSON object.

In: flow events. Out: text on a rich console, and a `FlowReport`.
"""
