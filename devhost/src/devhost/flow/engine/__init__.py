"""Dify's own workflow engine, graphon, with devhost's nodes and models.

No other part of devhost imports graphon or this package. `flow.turn` loads this package if graphon is installed.
"""
