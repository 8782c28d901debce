#!/usr/bin/env python3
"""Records the content of a release's saved nodes, so that tests can check that later versions still load them.

The argument is the git revision of the release, such as v0.1.0. The script writes tests/releases/VERSION/STRATEGY.yaml
for each strategy, with its declared parameters and variables, and with nodes as a person could have saved them.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
RELEASES = ROOT / "tests" / "releases"
KEPT = ("name", "type", "required", "scope", "default", "min", "max")
PICKED = {"model-selector", "array[tools]"}
"""Types of parameters that are set with pickers of the node."""
VARIABLES = {"array[object]": "start.items", "array[file]": "sys.files"}
"""The variable that a person selects for a parameter of type any, by the parameter's scope."""
TEXT = "one, two"
HEAD = "# Written by scripts/record_release.py. Do not edit.\n"

type Parameter = dict[str, Any]


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - as PyYAML calls it
        return True


def record(revision: str) -> None:
    manifest = yaml.safe_load(_shown(revision, "manifest.yaml"))
    folder = RELEASES / str(manifest["version"])
    folder.mkdir(parents=True, exist_ok=True)
    for provider in manifest["plugins"]["agent_strategies"]:
        for path in yaml.safe_load(_shown(revision, provider))["strategies"]:
            recorded = recorded_strategy(yaml.safe_load(_shown(revision, path)))
            text = yaml.dump(recorded, Dumper=_Plain, allow_unicode=True, sort_keys=False)
            (folder / Path(path).name).write_text(f"{HEAD}{text}", "utf-8")


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
    command = ["/usr/bin/env", "git", "show", f"{revision}:{path}"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S603 - git


if __name__ == "__main__":
    record(sys.argv[1] if sys.argv[1:] else "HEAD")
