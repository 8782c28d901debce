"""The results of an Agent node: text, files, JSON, variables, usage, the log tree, an error, and findings.

A `Finding` names a rule of Dify that the run broke.
"""
