#!/usr/bin/env python3
"""Write into the example apps what Dify's editor takes from an app's file and not from the plugin.

In every Agent node: `meta`, and `output_schema` with the fields of the node's own `answer_schema`. `make docs` calls
this; docs/host-facts.md, "Outputs in the editor", says what the editor does with them.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
APPS = "examples/*/*.yml"

_AGENT = re.compile(r"(?m)^( +)(agent_strategy_label: .*\n)(?:\1(?:meta|output_schema): .*\n)*")


def written(text: str, root: Path = ROOT) -> str:
    """The text of an app with its generated lines."""
    nodes = (node["data"] for node in yaml.safe_load(text)["workflow"]["graph"]["nodes"])
    agents = iter([data for data in nodes if data["type"] == "agent"])
    meta = yaml.safe_load((root / "manifest.yaml").read_text("utf-8"))["meta"]
    shown = {name: meta[name] for name in ("version", "minimum_dify_version")}

    def with_lines(match: re.Match[str]) -> str:
        indent, label = match.groups()
        lines = {"meta": shown, "output_schema": output_schema(next(agents), root)}
        return f"{indent}{label}" + "".join(f"{indent}{key}: {json.dumps(value)}\n" for key, value in lines.items())

    return _AGENT.sub(with_lines, text)


def output_schema(agent: Mapping[str, Any], root: Path = ROOT) -> dict[str, Any]:
    """The strategy's schema; `structured_output` is the node's own answer_schema, if it has one."""
    strategy = yaml.safe_load((root / "strategies" / f"{agent['agent_strategy_name']}.yaml").read_text("utf-8"))
    schema: dict[str, Any] = strategy["output_schema"]
    asked = agent["agent_parameters"].get("answer_schema", {}).get("value")
    if asked:
        declared = schema["properties"]["structured_output"]
        schema["properties"]["structured_output"] = {**json.loads(asked), "description": declared["description"]}
    return schema


def stale_apps(root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """The apps that are not as they should be, with what they should be."""
    for file in sorted(root.glob(APPS)):
        text = file.read_text("utf-8")
        wanted = written(text, root)
        if wanted != text:
            yield file, wanted


def main() -> int:
    for file, text in stale_apps():
        file.write_text(text, "utf-8")
        sys.stdout.write(f"{file.relative_to(ROOT)} written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
