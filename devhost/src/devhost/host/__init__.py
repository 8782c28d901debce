"""Runs strategy and tool plugins as Dify's Agent node and its plugin daemon do."""
