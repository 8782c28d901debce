#!/usr/bin/env python3
"""Records a release, so that tests can check that later versions load its saved nodes, with the same outputs.

    python -m scripts.record_release REVISION

The argument is the git revision of the release, such as v0.1.0. The script writes tests/releases/VERSION/STRATEGY.yaml
for each strategy, with its declared parameters and variables, and with nodes as a person could have saved them. The
script also runs the release's own code and writes the outputs to tests/releases/VERSION/runs.yaml.
"""

import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

import yaml

from scripts.release_runs import RELEASES, recorded_runs

ROOT = Path(__file__).resolve().parent.parent
KEPT = ("name", "type", "required", "scope", "default", "min", "max")
PICKED = {"model-selector", "array[tools]"}
"""Types of parameters that are set with pickers of the node."""
VARIABLES = {"array[object]": "start.items", "array[file]": "sys.files"}
"""The variable that a person selects for a parameter of type any, by the parameter's scope."""
TEXT = "one, two"
MAX_LINE = 120
HEAD = "# Written by scripts/record_release.py. Do not edit.\n"

type Parameter = dict[str, Any]


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - as PyYAML calls it
        return True


class _OneLine(dict[str, Any]):
    """A mapping that is written in braces on one line."""


_Plain.add_representer(
    _OneLine, lambda dumper, value: dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=True)
)


def record(revision: str) -> None:
    manifest = yaml.safe_load(_shown(revision, "manifest.yaml"))
    folder = RELEASES / str(manifest["version"])
    folder.mkdir(parents=True, exist_ok=True)
    strategies = list[str]()
    for provider in manifest["plugins"]["agent_strategies"]:
        for path in yaml.safe_load(_shown(revision, provider))["strategies"]:
            recorded = recorded_strategy(yaml.safe_load(_shown(revision, path)))
            strategies.append(recorded["strategy"])
            _write(folder / Path(path).name, recorded)
    with tempfile.TemporaryDirectory() as home:
        with tarfile.open(fileobj=BytesIO(_git("archive", revision))) as released:
            released.extractall(home, filter="data")
        runs = recorded_runs(Path(home), strategies)
    lines = {strategy: {name: _OneLine(run) for name, run in played.items()} for strategy, played in runs.items()}
    _write(folder / "runs.yaml", lines)


def _write(file: Path, recorded: dict[str, Any]) -> None:
    text = yaml.dump(recorded, Dumper=_Plain, allow_unicode=True, sort_keys=False, width=MAX_LINE)
    file.write_text(f"{HEAD}{text}", "utf-8")


def recorded_strategy(strategy: dict[str, Any]) -> dict[str, Any]:
    parameters = strategy["parameters"]
    variables = strategy.get("output_schema", {}).get("properties", {})
    return {
        "strategy": strategy["identity"]["name"],
        "parameters": [_declared(parameter) for parameter in parameters],
        "variables": {name: variable["type"] for name, variable in variables.items()},
        "nodes": _nodes([parameter for parameter in parameters if parameter["type"] not in PICKED]),
    }


def _declared(parameter: Parameter) -> Parameter:
    options = [str(option["value"]) for option in parameter.get("options") or ()]
    return {key: parameter[key] for key in KEPT if key in parameter} | ({"options": options} if options else {})


def _nodes(parameters: list[Parameter]) -> dict[str, Parameter]:
    """Return settings by the name of the node, in devhost's form: constants, and selectors of variables."""
    query = {"query": {"variable": "sys.query"}}
    typed = [parameter for parameter in parameters if parameter["type"] != "any"]  # its picker stores a selector
    nodes: dict[str, Parameter] = {
        "untouched": query,
        "cleared": {parameter["name"]: "" for parameter in typed} | query,
        "typed": {parameter["name"]: str(_edge(parameter, "default", 0, on=True)) for parameter in typed} | query,
        "lowest": {parameter["name"]: _edge(parameter, "min", 0, on=False) for parameter in parameters} | query,
        "highest": {parameter["name"]: _edge(parameter, "max", -1, on=True) for parameter in parameters} | query,
    }
    for parameter in parameters:
        for option in _declared(parameter).get("options", ()):
            nodes[f"{parameter['name']} {option}"] = {parameter["name"]: option} | query
    return nodes


def _edge(parameter: Parameter, bound: str, option: int, *, on: bool) -> object:
    match parameter["type"]:
        case "number":
            return parameter.get(bound, parameter.get("default", 0))
        case "boolean":
            return on
        case "select":
            return _declared(parameter)["options"][option]
        case "any":
            return {"variable": VARIABLES[parameter["scope"]]}
        case _:
            return TEXT


def _shown(revision: str, path: str) -> str:
    return _git("show", f"{revision}:{path}").decode()


def _git(*arguments: str) -> bytes:
    command = ["/usr/bin/env", "git", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout  # noqa: S603 - git


if __name__ == "__main__":
    record(sys.argv[1] if sys.argv[1:] else "HEAD")
