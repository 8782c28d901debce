# ruff: noqa: INP001 - the daemon runs this file as `python -m main` from its own folder, which is no package
"""Starts the help desk's tool plugin; how the host reaches it (stdio, TCP, HTTP) comes from the environment."""

from dify_plugin import DifyPluginEnv, Plugin

if __name__ == "__main__":
    Plugin(DifyPluginEnv()).run()
