"""Questions, retrieved documents and answers: immutable values that cannot be made wrong.

A module imports only modules to its left: `errors → values → retrieval → answer → ports`.
"""
