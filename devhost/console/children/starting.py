"""Starts a run: its setup beside its trace, and its process.

In: a `Setup`. Out: the name of the run that begins; if it cannot be started, nothing of it stays.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from devhost.console.children.child import Child
from devhost.console.runs.command import child_arguments
from devhost.console.runs.folder import OUTPUT, SETUP, RunFolder
from devhost.console.runs.fork_command import fork_child_arguments
from devhost.console.runs.setup import Setup
from devhost.errors import ConsoleError

type Start = Callable[[str, Sequence[str], Path], Child]
"""With a name, arguments of devhost, and the file for what it prints."""


def start_run(folder: RunFolder, start: Start, setup: Setup, *lines: str) -> str:
    """`lines`: what its process is told at once. ConsoleError if that cannot be started."""
    is_fork = setup.kind == "fork"
    about = (
        f"{setup.strategy or 'run'}-again" if is_fork else setup.scenario or setup.example or setup.strategy or "run"
    )
    name = folder.new_name(about)
    setup.write(folder.beside(name, SETUP))
    trace = folder.trace(name)
    try:
        arguments = (
            fork_child_arguments(setup, folder.trace(setup.of), trace) if is_fork else child_arguments(setup, trace)
        )
        child = start(name, arguments, folder.beside(name, OUTPUT))
    except ConsoleError:
        folder.beside(name, SETUP).unlink()
        folder.beside(name, OUTPUT).unlink(missing_ok=True)
        raise
    for line in lines:
        child.tell(line)
    return name
