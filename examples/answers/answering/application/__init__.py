"""The application's services: what the tools and the command line may ask for.

A module imports only modules to its left: `retrieving, history, syncing → searching → generate_and_reply`.
"""
