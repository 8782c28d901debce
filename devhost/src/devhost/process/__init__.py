"""A running plugin and its sessions.

A `Watcher` is told of every message in both directions; `Stop` ends one session from another thread.
"""
