"""The command of a fork: `devhost fork`, as a person would type it. In: a `Setup`, the trace. Out: arguments."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from devhost.console.runs.command import assignments, model_arguments
from devhost.console.runs.setup import Setup

INSTRUCTION = "instruction"


def fork_arguments(setup: Setup, trace: Path) -> tuple[str, ...]:
    """`trace`: of the run that goes on."""
    return ("fork", str(trace), *_of_fork(setup), *model_arguments(setup.model))


def fork_child_arguments(setup: Setup, origin: Path, trace: Path) -> tuple[str, ...]:
    """Those of the console's child, which writes a trace."""
    return (*fork_arguments(setup, origin), "--trace", str(trace), "--no-color")


def typed_fork(setup: Setup, trace: Path) -> str:
    """For a shell."""
    return shlex.join(("devhost", *fork_arguments(setup, trace)))


def _of_fork(setup: Setup) -> Iterator[str]:
    yield from ("--at", str(setup.at or 0))
    one_each = {
        "--question": setup.turn,
        "--plugin": setup.plugin,
        "--script": setup.script,
        "--instruction": setup.parameters.get(INSTRUCTION),
    }
    for option, value in one_each.items():
        if value is not None:
            yield from (option, str(value))
    yield from assignments("--param", {name: text for name, text in setup.parameters.items() if name != INSTRUCTION})
    if setup.live_tools:
        yield "--live-tools"
        if setup.example:
            yield from ("--example", setup.example)
        for folder in setup.tools:
            yield from ("--tools", str(folder))
