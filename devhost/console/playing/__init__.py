"""Addresses at which a person starts a run and steers it.

In: forms. Out: a child that was started or told something, and the page that leads on from there.
"""
