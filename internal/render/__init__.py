"""Writes events out as messages that Dify understands; nothing else builds one."""
