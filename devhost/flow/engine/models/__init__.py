"""devhost's models in the place of those that Dify's model plugins bring.

In: a node's model settings from the DSL, and the engine's prompt messages. Out: the engine's results and chunks, of the
model that `ModelOfNode` names.
"""
