# ruff: noqa: INP001 - the daemon runs this file as `python -m main` from its own folder, which is not a package
"""Starts the office's tool plugin; the environment says how the host reaches it: stdio, TCP or HTTP."""

from dify_plugin import DifyPluginEnv, Plugin

if __name__ == "__main__":
    Plugin(DifyPluginEnv()).run()
