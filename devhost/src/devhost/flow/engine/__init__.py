"""Dify's own workflow engine, graphon, with the nodes and models of devhost in it.

Nothing else of devhost imports graphon or this package; `flow.turn` loads it where graphon is installed.
"""
