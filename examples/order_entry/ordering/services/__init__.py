"""The application services: one for each tool, each a transaction or several.

In: what a tool parsed. Out: its agent's typed result, or a `RefusedError`. A module imports only modules to its left:
`wording → item_search, similar_orders, drafts, placing, reviewing`.
"""
