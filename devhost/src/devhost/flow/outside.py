"""What a flow may do on this machine besides calling tools: send HTTP requests, and run the code of its file."""

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

# HTTP requests and code run only where a person allows them: a DSL file may come from someone else.

PYTHON = "python3"
JAVASCRIPT = "javascript"


@dataclass(frozen=True)
class OutsideAccess:
    http: bool = False
    code: bool = False

    def why_not(self, kind: str, data: Mapping[str, object]) -> str | None:
        """The rest of a sentence about a node that may not run: what it does, and what helps. None if it may run."""
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


# Runs a program of a code node in a process of its own: with an empty environment, in a temporary folder, with limits
# of time, memory and the size of files. This is not a sandbox: it can read and write all that its user can, and reach
# the network. Templates run in such a process, too, in Jinja's own sandbox: they reach nothing, but can cost without
# end.

LIMITED = 'ulimit -f "$1"; [ "$2" = 0 ] || ulimit -v "$2" 2>/dev/null; shift 2; exec /usr/bin/env -i "$@"'
"""Files of blocks of 512 bytes, memory in KiB; 0 where the program limits its memory itself. macOS has no `-v`."""
MOST_WRITTEN = 64 * 1024 * 1024
"""Bytes of one file, or of what is printed."""
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
    """The program failed, or took too long; the text is what its node shows."""


def render_template(template: str, variables: str, limits: HostLimits) -> str:
    """`variables` is a JSON object; CodeError."""
    given = b64encode(f"[{json.dumps(template)}, {variables}]".encode()).decode()
    return str(json.loads(run_program(PYTHON, RENDER.replace("GIVEN", given), limits, "template")))


def run_program(language: str, program: str, limits: HostLimits, what: str = "code") -> str:
    """What it printed. `what` it is, for errors."""
    with (
        tempfile.TemporaryDirectory(prefix="devhost-code-") as folder,
        tempfile.TemporaryFile() as printed,
        tempfile.TemporaryFile() as complained,
    ):
        file = Path(folder, "program")
        file.write_text(program, encoding="utf-8")
        kibibytes = limits.code_bytes // 1024
        if language == JAVASCRIPT:  # it reserves far more addresses than it has memory
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
                os.killpg(process.pid, signal.SIGKILL)  # with the processes that it started
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
