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

PYTHON, JAVASCRIPT = "python3", "javascript"


@dataclass(frozen=True)
class Allowed:
    http: bool = False
    code: bool = False

    def why_not(self, kind: str, data: Mapping[str, object]) -> str | None:
        """Of a node of this type that may not run, what it does and what helps: the rest of a sentence."""
        match kind, data.get("code_language"):
            case "http-request", _ if not self.http:
                return "sends HTTP requests: allow it with --allow-http"
            case "code", _ if not self.code:
                return "runs code of the file on this machine, without a sandbox: allow it with --allow-code"
            case "code", language if language not in {PYTHON, JAVASCRIPT}:
                return f"has code in {language!r}; devhost runs {PYTHON} and {JAVASCRIPT}"
            case "code", language if language == JAVASCRIPT and shutil.which("node") is None:
                return "runs JavaScript, and there is no program `node` on the PATH: install Node.js"
        return None


NOTHING = Allowed()


# Runs a program of a code node in a process of its own: with an empty environment, in a temporary folder, for a limited
# time. This is not a sandbox: it can read and write all that its user can, and reach the network.


class CodeError(Exception):
    """The program failed, or took too long; the text is what its node shows."""


def run_program(language: str, program: str, limits: HostLimits) -> str:
    with (
        tempfile.TemporaryDirectory(prefix="devhost-code-") as folder,
        tempfile.TemporaryFile() as printed,
        tempfile.TemporaryFile() as complained,
    ):
        file = Path(folder, "program")
        file.write_text(program, encoding="utf-8")
        run = [shutil.which("node") or "node"] if language == JAVASCRIPT else [sys.executable, "-I", "-X", "utf8"]
        process = subprocess.Popen(
            [*run, str(file)],
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
            longer = f"it ran longer than {limits.code_seconds:g} seconds; --limit code-seconds=NUMBER allows more"
            raise CodeError(f"the code was ended because {longer}") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with the processes that it started
            process.wait()
        if code:
            raise CodeError(_read(complained).strip()[-4000:] or f"the code ended with status {code}")
        return _read(printed)


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
