"""What is known of OpenAI's models, and what the streams of both of its APIs have in common.

In: a model's name, completion parameters, token counts, exceptions of the `openai` package. Out: context size, prices
and parameter rules (`catalog`, `parameters`, `tokens`), the events of a turn (`turn_events`), Dify's error messages.
"""
