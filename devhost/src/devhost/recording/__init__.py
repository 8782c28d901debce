"""A traced run as a script: what the model said, and what the tools answered."""
