"""Models that are called with OpenAI's official SDK: the Responses API, and Chat Completions for compatible servers.

Only this package imports `openai`, so that a scripted run works without it.
"""
