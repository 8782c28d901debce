"""The models that answer a plugin's model calls.

`backend` defines the interface of a model. `scripted` has the model that answers from a script, and `openai_api` the
models behind an API.
"""
