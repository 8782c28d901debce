"""A running plugin and its sessions.

A `Watcher` receives every message in both directions. `Stop` ends one session from another thread.
"""
