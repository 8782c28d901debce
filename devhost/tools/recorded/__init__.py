"""Tools that answer from a recording, without a plugin.

In: the section `recorded` of a script. Out: a `Tool` for each tool in it; a call that was not recorded fails as a
tool's exception does.
"""
