"""The nodes that ask Dify's services in Dify, and devhost here.

In: a node's data from the DSL, and the variable pool. Out: the engine's events, with the outputs that other nodes refer
to.
"""
