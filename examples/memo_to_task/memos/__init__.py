"""Memos, the tasks made of them, and the decisions that say why.

In: what a model sent, as values of the schemas. Out: rows that commit as a whole, and values that were checked again
after they were stored. A package imports only those to its left: `values → storage → services, opening →
tool_base`. Tools use services, and never see what is in `storage`. Only `tool_base` knows Dify.
"""
