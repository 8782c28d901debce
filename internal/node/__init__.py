"""What the developer set in the node's panel.

In: the parameters as Dify sends them, in every shape. Out: frozen parameters, the chosen model, the secrets among the
values, and notes about what was ignored or clamped.
"""
