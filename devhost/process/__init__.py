"""A running plugin and its sessions.

In: requests for a plugin. Out: the plugin's messages for each session, or the reason why it was lost. A `Watcher` is
told of every message in both directions; `Stop` ends one session from another thread.
"""
