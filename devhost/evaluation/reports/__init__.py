"""An evaluation for people and for other programs.

In: a `Summary`, perhaps with a `Comparison`. Out: tables in a terminal, an HTML page, JUnit's XML, or JSON.
"""
