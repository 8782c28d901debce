"""Files on the engine: those of a person and those of tools, behind the engine's own file interfaces.

In: files of this machine, and tool files. Out: the engine's `File`s, their addresses and their bytes.
"""
