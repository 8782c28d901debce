"""HTTP requests and code run only where a person allows them: a DSL file may come from someone else."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass

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
