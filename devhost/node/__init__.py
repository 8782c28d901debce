"""The parameters of an Agent node, as Dify builds them before a run.

In: the settings of the node (constants, templates, variables), the variables of the workflow, the conversation so far.
Out: the parameters that the plugin gets, or a `ParameterError` with Dify's words.
"""
