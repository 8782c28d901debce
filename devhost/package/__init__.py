"""A plugin as one file: written, installed, opened.

In: a plugin's folder, or a `.difypkg` file. Out: the file, the same for the same contents; proof that it can be
installed; a folder to run it from. `devhost/plugin/check.py` says before what Dify would refuse.
"""
