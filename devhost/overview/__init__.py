"""What a plugin declares, and how well, in lines for a terminal: the commands `list` and `check`.

In: a plugin's directory. Out: a line for each thing, or for each fault; nothing is started.
"""
