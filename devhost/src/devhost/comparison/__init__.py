"""Compares two traced runs side by side, in a terminal, as JSON and as an HTML page."""
