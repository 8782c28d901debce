"""The messages for the model. A conversation only grows, and it fits into the model's window and into one line."""
