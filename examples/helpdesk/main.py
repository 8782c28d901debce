# ruff: noqa: INP001 - the daemon runs this file as `python -m main` from its own folder, which is not a package
"""Starts the help desk's tool plugin; the environment says how the host reaches it: stdio, TCP or HTTP."""

import sys
from pathlib import Path

from dify_plugin import DifyPluginEnv, Plugin

# Where `meaning` is in the repository; a package has its own copy.
sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))

if __name__ == "__main__":
    Plugin(DifyPluginEnv()).run()
