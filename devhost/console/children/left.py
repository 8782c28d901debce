"""Processes that a console started, and that go on although that console was killed.

In: the output of a run, beside which its console noted the process. Out: a `Left`, which can be stopped.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from devhost.console.runs.folder import OUTPUT

PROCESS = ".process.json"


class Noted(BaseModel):
    """As it stands in the file."""

    pid: int
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Left:
    pid: int
    arguments: tuple[str, ...]
    output: Path

    @property
    def exit_code(self) -> int | None:
        """None while it goes on; 0 after its end, because nothing knows how it ended."""
        return None if _is_that(self.pid, self.arguments) else 0

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGINT)


def note(pid: int, arguments: Sequence[str], output: Path) -> None:
    """A folder that cannot be written only makes the process unknown to the next console."""
    with contextlib.suppress(OSError):
        _noted_in(output).write_text(Noted(pid=pid, arguments=tuple(arguments)).model_dump_json(), encoding="utf-8")


def left_process(output: Path) -> Left | None:
    """None if it has ended, or if no console started it."""
    try:
        noted = Noted.model_validate_json(_noted_in(output).read_bytes())
    except (OSError, ValueError):
        return None
    return Left(noted.pid, noted.arguments, output) if _is_that(noted.pid, noted.arguments) else None


def _noted_in(output: Path) -> Path:
    return output.with_name(output.name.removesuffix(OUTPUT) + PROCESS)


def _is_that(pid: int, arguments: Sequence[str]) -> bool:
    """Whether the process has these arguments: after its end the system gives its number to another one."""
    return _command_of(pid).endswith(" ".join(arguments))


def _command_of(pid: int) -> str:
    """Empty if there is no such process."""
    if Path("/proc/self").exists():
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").replace("\0", " ")
        return ""
    told = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, check=False)  # noqa: S607 - macOS
    return told.stdout.decode(errors="replace").strip()
