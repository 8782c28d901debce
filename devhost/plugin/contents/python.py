"""The Python files of a package.

In: `Contents` and the manifest. Out: problems of the rules `compile` and `entrypoint`. The daemon runs compileall after
the installation, and starts `python -m ENTRYPOINT`.
"""

import warnings
from collections.abc import Iterator

from devhost.plugin.contents.files import Contents
from devhost.plugin.rules.listed import Problem
from devhost.protocol.wire import JsonObject


def compile_problems(contents: Contents) -> Iterator[Problem]:
    for path in contents.paths:
        if not path.endswith(".py"):
            continue
        try:
            with warnings.catch_warnings(action="ignore"):
                compile(contents.read(path), path, "exec", dont_inherit=True)
        except SyntaxError as error:
            yield Problem("compile", path, f"line {error.lineno or 1}", f"{error.msg}")
        except ValueError as error:  # NUL bytes
            yield Problem("compile", path, "", str(error))


def entrypoint_problems(contents: Contents, manifest: JsonObject) -> Iterator[Problem]:
    match manifest:
        case {"meta": {"runner": {"entrypoint": str(module)}}} if module:
            path = f"{module.replace('.', '/')}.py"
            if (reason := contents.absent(path)) and f"{module.replace('.', '/')}/__main__.py" not in contents:
                yield Problem("entrypoint", "manifest.yaml", "meta.runner.entrypoint", f"{path} {reason}")
