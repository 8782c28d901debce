"""Dify's own workflow engine, graphon, with the nodes and models of devhost in it.

In: a `FlowFile`, a `FlowTurn` and its `Surroundings`. Out: flow events. Nothing else of devhost imports graphon or this
package; `flow.engine_loading` imports it by name where the environment has graphon.
"""
