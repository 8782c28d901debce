"""The form in which a person chooses what to run, made from the strategy's YAML.

In: what was typed (`Choices`). Out: a `Plan` with its fields and the mistakes beside them; a `Setup` if there are none.
"""
