#!/usr/bin/env python3
"""Writes into the example apps the values that Dify's editor reads from an app's file and not from the plugin.

These are `meta` and `output_schema` in every Agent node, with the fields of the node's own `answer_schema`, and
`dependencies` in every app. docs/host-facts.md, "Outputs in the editor" and "Dependencies of an app", describes their
effect in the editor. `make docs` calls this script. A release also passes the packages for their checksums:
docs/releasing.md.

    scripts/example_apps.py [PACKAGE…]
"""

import hashlib
import json
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
APPS = "examples/*/*.yml"

UNKNOWN = "0" * 64
"""The placeholder for the checksum of a package without a release."""

_AGENT = re.compile(r"(?m)^( +)(agent_strategy_label: .*\n)(?:\1(?:meta|output_schema): .*\n)*")
_DEPENDENCIES = re.compile(r"(?m)^dependencies:.*\n(?: .*\n)*")
_IDENTIFIER = re.compile(r"([\w-]+/[\w-]+:[\w.]+)@(\w+)")

type Manifest = Mapping[str, Any]
type Checksums = Mapping[str, str]
"""The checksums of packages, by author/name:version."""


def written(text: str, checksums: Checksums, root: Path = ROOT) -> str:
    """Return the text of an app with its generated lines."""
    nodes = [node["data"] for node in yaml.safe_load(text)["workflow"]["graph"]["nodes"]]
    agents = [data for data in nodes if data["type"] == "agent"]
    ours, *examples = (
        yaml.safe_load(file.read_text("utf-8"))
        for file in (root / "manifest.yaml", *sorted(root.glob("examples/*/manifest.yaml")))
    )
    shown = {name: ours["meta"][name] for name in ("version", "minimum_dify_version")}
    rest = iter(agents)

    def with_lines(match: re.Match[str]) -> str:
        indent, label = match.groups()
        lines = {"meta": shown, "output_schema": output_schema(next(rest), root)}
        return f"{indent}{label}" + "".join(f"{indent}{key}: {json.dumps(value)}\n" for key, value in lines.items())

    used = [manifest for manifest in examples if f"{_plugin(manifest)}/" in json.dumps(agents)]
    known = {**dict(_IDENTIFIER.findall("".join(_DEPENDENCIES.findall(text)))), **checksums}
    entries = "".join(f"  - {json.dumps(dependency(each, known, ours))}\n" for each in (ours, *used))
    return _DEPENDENCIES.sub(lambda _: f"dependencies:\n{entries}", _AGENT.sub(with_lines, text), count=1)


def dependency(manifest: Manifest, checksums: Checksums, ours: Manifest) -> dict[str, Any]:
    """Return the dependency on a plugin. Dify can install it only from a release on GitHub.

    Without a release, the result is the same as in an app that Dify exports.
    """
    name = f"{_plugin(manifest)}:{manifest['version']}"
    repo = str(ours.get("repo", ""))
    identifier = f"{name}@{checksums.get(name, UNKNOWN)}"
    if "github.com/" not in repo:
        return {"type": "package", "value": {"plugin_unique_identifier": identifier}}
    release = {
        "repo": repo.partition("github.com/")[2].rstrip("/"),
        "version": f"v{ours['version']}",
        "package": f"{manifest['name']}-{manifest['version']}.difypkg",
    }
    return {"type": "github", "value": {**release, "github_plugin_unique_identifier": identifier}}


def checksum(package: bytes) -> tuple[str, str]:
    """Return a package's author/name:version and its checksum. Like Dify's daemon, it covers all names and contents."""
    with zipfile.ZipFile(BytesIO(package)) as opened:
        contents = {name: opened.read(name) for name in opened.namelist() if not name.endswith("/")}
    hashed = [hashlib.sha256(part).digest() for name in sorted(contents) for part in (name.encode(), contents[name])]
    manifest = yaml.safe_load(contents["manifest.yaml"])
    return f"{_plugin(manifest)}:{manifest['version']}", hashlib.sha256(b"".join(hashed)).hexdigest()


def _plugin(manifest: Manifest) -> str:
    return f"{manifest['author']}/{manifest['name']}"


def output_schema(agent: Mapping[str, Any], root: Path = ROOT) -> dict[str, Any]:
    """Return the strategy's schema. In it, `structured_output` is the node's own answer_schema, if it has one."""
    strategy = yaml.safe_load((root / "strategies" / f"{agent['agent_strategy_name']}.yaml").read_text("utf-8"))
    schema: dict[str, Any] = strategy["output_schema"]
    asked = agent["agent_parameters"].get("answer_schema", {}).get("value")
    if asked:
        declared = schema["properties"]["structured_output"]
        schema["properties"]["structured_output"] = {**json.loads(asked), "description": declared["description"]}
    return schema


def stale_apps(checksums: Checksums, root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """Yield each app that is out of date, with its correct text."""
    for file in sorted(root.glob(APPS)):
        text = file.read_text("utf-8")
        wanted = written(text, checksums, root)
        if wanted != text:
            yield file, wanted


def main(packages: Sequence[str]) -> int:
    for file, text in stale_apps(dict(checksum(Path(package).read_bytes()) for package in packages)):
        file.write_text(text, "utf-8")
        sys.stdout.write(f"{file.relative_to(ROOT)} written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
