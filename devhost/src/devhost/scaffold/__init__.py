"""A new plugin's folder: a strategy or a tool that runs, with a scenario and a test."""
