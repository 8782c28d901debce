"""Text and JSON, independent of their meaning.

In: any string or JSON value. Out: text that the wire and the database take, text without known secrets, text cut to a
length, values read from what was pasted. Long work here lets other sessions run in between.
"""
