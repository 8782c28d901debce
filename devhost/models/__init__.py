"""The models that answer a plugin's model calls.

In: a plugin's request, decoded as Dify's API decodes it (`request`). Out: chunks as a provider plugin streams them, or
a `ModelCallError`. `backend` has the interface of a model. The one that answers from a script is in `scripted`,
those behind an API are in `openai_api`.
"""
