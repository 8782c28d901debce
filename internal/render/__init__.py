"""Converts events to messages for Dify. No other package creates such messages."""
