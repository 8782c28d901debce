"""What a person sees and types in a terminal.

In: the messages of a run while they come, the `Run` at its end, or a trace (`replay`). Out: text that rich prints.
`questions` reads the questions of a conversation; `signals` turns Ctrl-C into the end of a turn.
"""
