"""JSON Schema written by others: is it usable, and does a value satisfy it?

In: a schema of a tool or of ``answer_schema``, and values from the model. Out: the schema, repaired where it is plainly
wrong; a value converted to the types it asks for; the errors as sentences for the model.
"""
