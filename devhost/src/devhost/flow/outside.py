"""What a flow may do on this machine besides calling tools: send HTTP requests, and run the code of its file."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from devhost.limits import HostLimits

# HTTP requests and code run only where a person allows them: a DSL file may come from someone else.

HTTP, CODE = "http-request", "code"
PYTHON, JAVASCRIPT = "python3", "javascript"


@dataclass(frozen=True)
class Allowed:
    http: bool = False
    code: bool = False

    def why_not(self, kind: str, data: Mapping[str, object]) -> str | None:
        """Of a node of this type that may not run, what it does and what helps: the rest of a sentence."""
        if kind == HTTP and not self.http:
            return "sends HTTP requests: allow it with --allow-http"
        if kind != CODE:
            return None
        if not self.code:
            return "runs code of the file on this machine, without a sandbox: allow it with --allow-code"
        return _cannot_run(data.get("code_language"))


NOTHING = Allowed()


def _cannot_run(language: object) -> str | None:
    if language == JAVASCRIPT and shutil.which("node") is None:
        return "runs JavaScript, and there is no program `node` on the PATH: install Node.js"
    if language not in {PYTHON, JAVASCRIPT}:
        return f"has code in {language!r}; devhost runs {PYTHON} and {JAVASCRIPT}"
    return None


# Runs a program of a code node in a process of its own, with limits. This is not a sandbox.
#
# The process has an empty environment, a temporary folder that is removed afterwards, and limits of time, memory and
# output; it can read and write all that its user can, and reach the network.

MOST_WORDS = 4000
"""Characters of an error, from its end."""
MEBIBYTE = 1024 * 1024
STARTER = """
import os, resource, sys
def limit(kind, most):
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))
seconds, memory, output = map(int, sys.argv[1:4])
limit(resource.RLIMIT_CPU, seconds)
limit(resource.RLIMIT_FSIZE, output)
limit(resource.RLIMIT_CORE, 0)
if memory:
    limit(resource.RLIMIT_AS, memory)
os.execve(sys.argv[4], sys.argv[4:], {})
"""
"""Sets the limits in the new process: in the child of a process with threads, Python code could wait for ever."""


class CodeError(Exception):
    """The program failed, or a limit ended it; the text is what its node shows."""


def run_program(language: str, program: str, limits: HostLimits) -> str:
    with (
        tempfile.TemporaryDirectory(prefix="devhost-code-") as folder,
        tempfile.TemporaryFile() as printed,
        tempfile.TemporaryFile() as complained,
    ):
        process = subprocess.Popen(
            _command(language, program, Path(folder), limits),
            cwd=folder,
            env={},
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=complained,
            start_new_session=True,
        )
        try:
            code = process.wait(limits.code_seconds)
        except subprocess.TimeoutExpired:
            raise CodeError(_ended(f"it ran longer than {limits.code_seconds:g} seconds", "code-seconds")) from None
        finally:
            _end(process)
        output = _read(printed)
        if len(output) >= limits.code_output_bytes:
            raise CodeError(_ended(f"it printed {limits.code_output_bytes:,} bytes or more", "code-output-bytes"))
        if code:
            words = _read(complained).decode(errors="replace").strip()[-MOST_WORDS:]
            raise CodeError(words or f"the code ended with status {code}")
        return output.decode(errors="replace")


def _command(language: str, program: str, folder: Path, limits: HostLimits) -> list[str]:
    file, memory = folder / "program", limits.code_memory_bytes
    file.write_text(program, encoding="utf-8")
    if language == JAVASCRIPT:
        # It reserves far more address space than it uses: its own option limits the memory.
        run, memory = [shutil.which("node") or "node", f"--max-old-space-size={memory // MEBIBYTE}", str(file)], 0
    else:
        run = [sys.executable, "-I", "-X", "utf8", str(file)]
    numbers = [str(int(limits.code_seconds) + 1), str(memory), str(limits.code_output_bytes)]
    return [sys.executable, "-I", "-S", "-c", STARTER, *numbers, *run]


def _ended(why: str, limit: str) -> str:
    return f"the code was ended because {why}; --limit {limit}=NUMBER allows more"


def _end(process: subprocess.Popen[bytes]) -> None:
    """With the processes that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()
