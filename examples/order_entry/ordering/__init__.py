"""Order requests of a wholesaler: what a model may send, what is stored, what the order system gets.

A module imports only packages to its left: `values → orders → storage → order_system → services → application →
tool_base`. Only `tool_base` knows Dify; only `services` and `application` know `storage`.
"""
