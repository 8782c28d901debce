"""Writes runs to a trace file, message by message, and reads them.

The file has JSON lines: a header, then every message in both directions and the end of each run, in the order of
their arrival.
"""
