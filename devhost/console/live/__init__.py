"""Runs as they go on: read from their traces while these are written, and rendered piece by piece.

In: a trace's file. Out: pieces of a page, each by its id, and what of them has changed.
"""
