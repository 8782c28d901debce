"""What is wrong with a flow, or missing for it, said before it starts.

In: a `FlowFile`, the strategies that there are, and what the command line gives. Out: sentences that name the node and
say what would be right. Nothing here needs the engine, so that a mistake is told before anything is installed.
"""
