"""Runs a command of a person or an installer, and ends it together with all processes that it started."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from devhost.process.session import Stop


def why_it_failed(
    command: Sequence[str], folder: Path, *, environment: Mapping[str, str] | None = None, stop: Stop | None = None
) -> str:
    """Runs the command in the folder, without input.

    Returns the command's exit code and the last lines of its output. The lines are empty if the exit code is 0. Without
    `environment` the command inherits devhost's own.
    """
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        process_group=0,
    ) as process:

        def end() -> None:
            """Kills the command and all processes that it has started."""
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)

        try:
            (stop or Stop()).ends(end)
            printed, _ = process.communicate()
        except BaseException:
            end()
            raise
    words = [f"exit code {process.returncode}", *printed.strip().splitlines()[-15:]]
    if process.returncode:
        return "\n".join(words)
    return ""
