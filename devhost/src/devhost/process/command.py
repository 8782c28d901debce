"""A command of a person's or of an installer, which ends with all that it started."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from devhost.process.session import Stop

LAST_LINES = 15
"""Of what it printed, for an error."""


@dataclass(frozen=True)
class Done:
    exit_code: int
    last_words: str


@dataclass(frozen=True)
class _Group:
    """The process, with all processes that it starts."""

    process: subprocess.Popen[str]

    def stop(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)


def run_command(
    command: Sequence[str], folder: Path, *, environment: Mapping[str, str] | None = None, stop: Stop | None = None
) -> Done:
    """In the folder, without input; `environment`: None for devhost's own."""
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
        group = _Group(process)
        try:
            (stop or Stop()).ends(group)
            printed, _ = process.communicate()
        except BaseException:
            group.stop()
            raise
    return Done(process.returncode, "\n".join(printed.strip().splitlines()[-LAST_LINES:]))
