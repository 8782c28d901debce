"""A running plugin and its sessions.

A `Watcher` receives every message in both directions. `Stop` ends the sessions of one turn from another thread.
"""
