"""The environment of Dify's workflow engine: `.venv-flow`, made by the first `devhost flow`.

It holds the engine beside all that devhost needs, so that a flow runs in one process.
"""

import importlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, cast

from devhost.errors import FlowEnvironmentError
from devhost.flow.surroundings import FlowEngine
from devhost.home import HOME, devhost_command


def go_on_in_flow_environment(arguments: Sequence[str], home: Path = HOME) -> NoReturn:
    """Makes the environment when it is missing or out of date; FlowEnvironmentError if that fails.

    `home`: the folder that devhost is in.
    """
    set_up, python = home / "scripts" / "setup", str(home / ".venv-flow" / "bin" / "python")
    made = subprocess.run([str(set_up), "flow"], check=False, stdout=sys.stderr)
    if made.returncode:
        raise FlowEnvironmentError(f"{set_up} flow could not make the environment of the workflow engine; see above")
    os.execv(python, devhost_command(python, arguments, home))  # noqa: S606 - its own interpreter


# The one place that loads Dify's workflow engine: where it is not installed, everything else of devhost works.

ENGINE = "graphon"


def has_engine() -> bool:
    """Whether this interpreter's environment has the engine."""
    return importlib.util.find_spec(ENGINE) is not None


def load_engine() -> FlowEngine:
    return cast("FlowEngine", importlib.import_module("devhost.flow.engine.play").play)
