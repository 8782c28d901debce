"""JSON Schemas that others wrote: whether one can be used, and whether a value fits it.

They come from tools and from the parameter ``answer_schema``; the values come from the model.
"""
