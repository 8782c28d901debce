"""The Agent node: the parameters that it builds before a run, and what becomes of the messages of one."""
