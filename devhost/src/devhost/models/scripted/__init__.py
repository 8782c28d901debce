"""The model whose answers are written down in a script file."""
