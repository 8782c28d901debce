"""The Agent node: builds the parameters of a run and processes the messages that the run sends."""
