"""The tools that the nodes of a flow hold, and the values of an Agent node's panel.

In: nodes as in the DSL file, and the tools of the plugins that are given. Out: settings for a run, and the tools that
are missing.
"""
