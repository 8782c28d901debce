"""The one place that loads Dify's workflow engine: where it is not installed, everything else of devhost works."""

import importlib
import importlib.util
from typing import cast

from devhost.flow.surroundings import FlowEngine

ENGINE = "graphon"


def has_engine() -> bool:
    """Whether this interpreter's environment has the engine."""
    return importlib.util.find_spec(ENGINE) is not None


def load_engine() -> FlowEngine:
    return cast("FlowEngine", importlib.import_module("devhost.flow.engine.play").play)
