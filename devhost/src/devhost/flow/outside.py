"""Controls what a flow may do on this machine besides calling tools: sending HTTP requests and running its code."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from devhost.limits import HostLimits

# HTTP requests and code are only run if a person allows them, because a DSL file may come from someone else.

PYTHON = "python3"
JAVASCRIPT = "javascript"


@dataclass(frozen=True)
class OutsideAccess:
    """The permissions that a user gives to a flow."""

    http: bool = False
    code: bool = False

    def why_not(self, kind: str, data: Mapping[str, object]) -> str | None:
        """Returns the rest of a sentence that says why a node may not run and how to allow it.

        Returns None if the node may run.
        """
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


NOTHING = OutsideAccess()


# Runs the program of a Code node in a separate process with an empty environment, in a temporary folder, and with
# limits on time, memory and file size. This is not a sandbox: the program can read and write everything that its user
# can, and it can use the network. Templates also run in such a process, inside Jinja's own sandbox: they cannot access
# anything, but without limits they could use any amount of time and memory.

LIMITED = 'ulimit -f "$1"; [ "$2" = 0 ] || ulimit -v "$2" 2>/dev/null; shift 2; exec /usr/bin/env -i "$@"'
"""A shell command that limits the file size ($1, in blocks of 512 bytes) and the memory ($2, in KiB).

$2 is 0 if the program limits its memory itself. `ulimit` has no `-v` on macOS.
"""
MOST_WRITTEN = 64 * 1024 * 1024
"""The maximum size in bytes of a file that the program writes, and of its output."""
RENDER = """
import base64, json, sys
from jinja2 import TemplateError
from jinja2.sandbox import SandboxedEnvironment
template, variables = json.loads(base64.b64decode("GIVEN"))
try:
    text = SandboxedEnvironment().from_string(template).render(variables)
except TemplateError as error:
    sys.exit(str(error))
except MemoryError:
    raise
except Exception as error:
    sys.exit(f"{type(error).__name__}: {error}")
print(json.dumps(text))
"""


class CodeError(Exception):
    """The program failed or took too long. The text of the error is what the node shows."""


def render_template(template: str, variables: str, limits: HostLimits) -> str:
    """Renders a Jinja template. `variables` is a JSON object. Raises CodeError if the template fails."""
    given = b64encode(f"[{json.dumps(template)}, {variables}]".encode()).decode()
    return str(json.loads(run_program(PYTHON, RENDER.replace("GIVEN", given), limits, "template")))


def run_program(language: str, program: str, limits: HostLimits, what: str = "code") -> str:
    """Runs a program and returns its output. Raises CodeError on failure. `what` names the program in the error."""
    with (
        tempfile.TemporaryDirectory(prefix="devhost-code-") as folder,
        tempfile.TemporaryFile() as printed,
        tempfile.TemporaryFile() as complained,
    ):
        file = Path(folder, "program")
        file.write_text(program, encoding="utf-8")
        kibibytes = limits.code_bytes // 1024
        if language == JAVASCRIPT:  # Node.js reserves far more address space than it uses memory
            run = [shutil.which("node") or "node", f"--max-old-space-size={max(kibibytes // 1024, 1)}"]
            kibibytes = 0
        else:
            run = [sys.executable, "-I", "-X", "utf8"]
        limited = ["/bin/sh", "-c", LIMITED, "sh", str(MOST_WRITTEN // 512), str(kibibytes)]
        process = subprocess.Popen(
            [*limited, *run, str(file)],
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
            raise CodeError(f"the {what} was ended because {longer}") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also kills the processes that the program started
            process.wait()
        if code:
            said = _read(complained).strip()[-4000:] or f"the {what} ended with status {code}"
            if said.endswith("MemoryError"):
                most = f"{limits.code_bytes:,} bytes of memory; --limit code-bytes=NUMBER allows more"
                said = f"the {what} was ended because it needed more than {most}"
            raise CodeError(said)
        return _read(printed)


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
