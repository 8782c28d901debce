"""Signals of the person at the terminal and of the system.

In: SIGINT, SIGTERM, SIGHUP. Out: exceptions that end devhost with its plugins, or the end of one turn of a chat.
"""
