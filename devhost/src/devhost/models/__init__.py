"""The models that answer a plugin's model calls.

`backend` has the interface of a model. The one that answers from a script is in `scripted`, those behind an API are
in `openai_api`.
"""
