"""Files that plugins fetch and send over HTTP, as from Dify's file service.

In: files of this machine, and what plugins upload. Out: files as they stand in a plugin's parameters, each with a URL
that answers.
"""
