"""The flows of the examples can be published in Dify, and name plugins and tools as these declare them.

Whether a flow runs is shown where the engine is: tests/flows plays a case of each.
"""

import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost.cli.commands import main
from devhost.flow.document import FlowFile
from devhost.trace.flow import FlowNode
from scripts import example_apps

from .conftest import EXAMPLES

ROOT = EXAMPLES.parent
FLOWS = {f"{file.parent.name}/{file.stem}": FlowFile.read(file) for file in sorted(EXAMPLES.glob("*/*.yml"))}
AGENTS = {
    f"{name}-{node.id}": node for name, flow in FLOWS.items() for node in flow.nodes.values() if node.type == "agent"
}

each_agent = pytest.mark.parametrize("node", AGENTS.values(), ids=AGENTS)


def read_yaml(file: Path) -> dict[str, Any]:
    value: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return value


MANIFESTS = {file.parent: read_yaml(file) for file in sorted(EXAMPLES.glob("*/manifest.yaml"))}
PLUGINS = {(manifest["author"], manifest["name"]): folder for folder, manifest in MANIFESTS.items()}


@pytest.mark.parametrize("flow", FLOWS.values(), ids=FLOWS)
def test_the_editor_publishes_it(flow: FlowFile) -> None:
    assert main(["check", str(flow.path)]) == 0


@each_agent
def test_an_agent_has_its_strategys_label_and_a_sentence_for_the_user_if_it_fails(node: FlowNode) -> None:
    """The sentence stands in a branch, or is the default of its text."""
    strategy = read_yaml(ROOT / "strategies" / f"{node.data['agent_strategy_name']}.yaml")
    assert node.data["agent_strategy_label"] == strategy["identity"]["label"]["en_US"]
    assert node.data["agent_strategy_provider_name"] == "gpt5-agents/gpt5_agent/gpt5_agent"
    defaults = [default["key"] for default in node.data.get("default_value", [])]
    assert (node.data["error_strategy"], defaults) in [
        ("fail-branch", []),
        ("default-value", ["text"]),
        ("default-value", ["text", "state"]),
    ]


@each_agent
def test_an_agents_tools_are_those_of_an_example(node: FlowNode) -> None:
    for tool in node.data["agent_parameters"]["tools"]["value"]:
        author, plugin, provider = tool["provider_name"].split("/")
        folder = PLUGINS[author, plugin]
        assert read_yaml(folder / "provider" / f"{provider}.yaml")["identity"]["name"] == provider
        declared = read_yaml(folder / "tools" / f"{tool['tool_name']}.yaml")
        assert tool["tool_label"] == declared["identity"]["label"]["en_US"]
        for place, form in (("parameters", "llm"), ("settings", "form")):
            assert set(tool[place]) == {each["name"] for each in declared["parameters"] if each["form"] == form}


def test_the_dependencies_keep_their_checksums_until_a_package_has_another() -> None:
    text = (EXAMPLES / "workflows" / "knowledge.yml").read_text("utf-8")
    manifest = read_yaml(ROOT / "manifest.yaml")
    ours = f"{manifest['author']}/{manifest['name']}:{manifest['version']}"

    once = example_apps.written(text, {ours: "a" * 64})

    assert f'{{"plugin_unique_identifier": "{ours}@{"a" * 64}"}}' in once
    assert example_apps.written(once, {}) == once


def test_a_checksum_is_that_of_dify_s_daemon() -> None:
    """The package and its checksum are recorded from the daemon 0.6.0, 2026-11-23."""
    recorded = read_yaml(ROOT / "devhost" / "tests" / "fixtures" / "dify" / "package-checksum.yaml")
    package = BytesIO()
    with zipfile.ZipFile(package, "w") as opened:
        for name, content in recorded["files"].items():
            opened.writestr(name, content)

    assert "@".join(example_apps.checksum(package.getvalue())) == recorded["identifier"]
