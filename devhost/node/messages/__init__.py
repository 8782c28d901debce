"""What Dify's Agent node does with each message of a tool or a strategy.

In: messages as the daemon passes them on. Out: typed messages, in which files are links to tool files, and text with
closed think tags. Errors that fail the node are `NodeFailedError`.
"""
