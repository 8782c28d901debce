"""Forms of Human Input nodes: read from the DSL, and answered by options, a script or a person.

In: a node's data; what the person or the command line says. Out: a `Form`, and a `FormAnswer` to it.
"""
