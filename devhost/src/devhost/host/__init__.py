"""The Agent node and the daemon around one strategy plugin.

`host` builds the request and returns the `Run`; `backwards` answers the plugin's calls for models and tools
meanwhile.
"""
