"""What a plugin declares, in lines for a terminal.

In: declarations. Out: objects that rich prints.
"""
