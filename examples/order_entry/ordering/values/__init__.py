"""What passes between a model and the tools: words of the field, inputs, results.

In: nothing. Out: the schemas. A module imports only modules to its left: `vocabulary → inputs, results`.
"""
