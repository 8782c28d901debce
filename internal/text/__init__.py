"""Text and JSON as such, whatever they mean.

In: any string or JSON value. Out: text that the wire and the database take, text without known secrets, text cut to a
length, values read from what was pasted. Long work here lets other sessions run in between.
"""
