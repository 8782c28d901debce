"""The model whose answers come from a script file."""
