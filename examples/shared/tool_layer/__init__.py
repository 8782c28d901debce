"""What every tool of an example needs around its own work.

It makes a typed value of what a model sent, or an error that the model can correct; the answer is a small typed result,
and each call a row in `run_steps`. The examples share this one package: `scripts/stage.py` puts it into the package of
each plugin that uses it. A module imports only modules to its left: `errors → envelope, parsing, address → database →
run_steps → recorded_tool, audit`. Only `recorded_tool` knows Dify.
"""
