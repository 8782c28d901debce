"""What an Agent node leaves behind: text, files, JSON, variables, usage, the log tree, an error, and findings.

A `Finding` names a rule of Dify's that the run broke.
"""
