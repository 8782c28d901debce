"""What an Agent node leaves behind: text, files, JSON, variables, usage, the log tree, an error, and findings.

In: the messages of a run, one by one (`fold`). Out: `NodeOutputs`, and a `Run` with its error as the node shows it. A
`Finding` names a rule of Dify's that the run broke. `report` is a run as one JSON object.
"""
