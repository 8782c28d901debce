"""The Agent node and the daemon around one strategy plugin."""
