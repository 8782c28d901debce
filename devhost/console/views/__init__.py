"""What each address of the console answers.

In: a request, and the `Console` behind it. Out: pages, parts of pages and streams of events.
"""
