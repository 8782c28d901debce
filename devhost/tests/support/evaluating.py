"""Files of cases for the puppet strategy, whose question is a list of steps, and the command that runs them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from devhost.cli.commands import main
from devhost.protocol.wire import JsonObject
from support.plugins import FIXTURES, PUPPET

WHERE = ["--plugin", str(PUPPET), "--examples", str(FIXTURES)]
TOOLBOX = "devhost-tests/toolbox/toolbox"


def call(tool: str, **parameters: object) -> JsonObject:
    return {"call": {"provider": TOOLBOX, "tool_name": tool, "parameters": parameters}}


def variable(name: str, value: object) -> JsonObject:
    return {"emit": {"type": "variable", "message": {"variable_name": name, "variable_value": value}}}


def case(name: str, *steps: JsonObject, said: str | Sequence[JsonObject] = "unused", **keys: Any) -> JsonObject:  # noqa: ANN401 - as in YAML
    """`said`: the model's text, or its turns."""
    turns = [{"text": said}] if isinstance(said, str) else list(said)
    return {"name": name, "query": json.dumps(list(steps)), "turns": turns, "expect": {}, **keys}


def write(folder: Path, *cases: JsonObject, **keys: Any) -> Path:  # noqa: ANN401 - as in YAML
    file = folder / "cases.yaml"
    file.write_text(yaml.safe_dump({"example": "toolbox", "cases": list(cases), **keys}, allow_unicode=True))
    return file


def evaluate(file: Path, *options: str) -> int:
    return main(["eval", str(file), *WHERE, "--scripted", *options])


def result_lines(file: Path) -> list[JsonObject]:
    """Those of the results, without headers."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if "repeat" in line]


def write_results(file: Path, passed: dict[str, Sequence[bool]], /, **header: Any) -> Path:  # noqa: ANN401 - as in JSON
    """A file of results with one column, of a real model; `passed`: by case, whether each repeat passed."""
    known: JsonObject = {
        "file": "cases.yaml",
        "description": "",
        "scripted": False,
        "columns": {"default": {}},
        "cases": [{"name": name, "question": "?", "rate": 1.0} for name in passed],
        "runs": sum(map(len, passed.values())),
    }
    lines: list[JsonObject] = [{"devhost_evaluation": 2, **known, **header}]
    for name, repeats in passed.items():
        for repeat, is_passed in enumerate(repeats, start=1):
            check = {"name": "text equals", "expected": "yes", "found": "no" * (not is_passed)}
            observed = {"text": "yes", "tokens": 100 + repeat, "seconds": 0.5, "price": "0.01"}
            line = {"case": name, "column": "default", "repeat": repeat, "observed": observed, "checks": [check]}
            lines.append(line)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file
