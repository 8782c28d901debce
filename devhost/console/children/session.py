"""Kills all processes of a session. Plugins have process groups of their own, but stay in the session of their devhost.

In: the process that began the session. Out: nothing.
"""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

PROCESSES = Path("/proc")


def kill_session(leader: int) -> None:
    """Twice, because a process may start another one while the first list is gone through."""
    for _ in range(2):
        for process in _processes():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getsid(process) == leader:
                    os.kill(process, signal.SIGKILL)


def _processes() -> list[int]:
    if (PROCESSES / "self").exists():
        return [int(entry.name) for entry in PROCESSES.iterdir() if entry.name.isdigit()]
    listed = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, check=True)  # noqa: S607 - macOS has no /proc
    return [int(number) for number in listed.stdout.split()]
