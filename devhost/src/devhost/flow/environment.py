"""Where Dify's workflow engine is: in devhost's own environment, or in `.venv-flow` of the repository.

The first `devhost flow` makes `.venv-flow`. Nothing else of devhost needs the engine.
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
from devhost.flow.turn import FlowEngine
from devhost.home import REPOSITORY, devhost_command

ENGINE = "graphon"
NO_ENGINE = (
    "a flow runs on Dify's workflow engine, which is not installed: pip install 'dify-devhost[flow]', with Python 3.12 "
    "or 3.13"
)


def go_on_in_flow_environment(arguments: Sequence[str], repository: Path | None = REPOSITORY) -> NoReturn:
    """Makes the environment when it is missing or out of date; FlowEnvironmentError if that fails."""
    if repository is None:
        raise FlowEnvironmentError(NO_ENGINE)
    set_up, python = repository / "scripts" / "setup", str(repository / ".venv-flow" / "bin" / "python")
    made = subprocess.run([str(set_up), "flow"], check=False, stdout=sys.stderr)
    if made.returncode:
        raise FlowEnvironmentError(f"{set_up} flow could not make the environment of the workflow engine; see above")
    os.execv(python, devhost_command(python, arguments))  # noqa: S606 - its own interpreter


def has_engine() -> bool:
    """Whether this interpreter's environment has the engine."""
    return importlib.util.find_spec(ENGINE) is not None


def load_engine() -> FlowEngine:
    return cast("FlowEngine", importlib.import_module("devhost.flow.engine.play").play)
