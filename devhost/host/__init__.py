"""The Agent node and the daemon around one strategy plugin.

In: a strategy's name, the values of its parameters, a model and tools. Out: a `Run`. `agent_node` builds the request,
`backwards` and `reply` answer the plugin's calls for models and tools while the strategy works.
"""
