"""Models behind OpenAI's official SDK: the Responses API, and Chat Completions for compatible servers.

In: a `ModelRequest`, as Dify's core hands it to a model plugin. Out: chunks as Dify's openai plugins stream them. Only
this package and `models.provider.failures` import `openai`, so that a scripted run works without it.
"""
