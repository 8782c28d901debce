"""The flows of the examples can be published in Dify, and name plugins and tools as these declare them.

Whether a flow runs is shown where the engine is: tests/flows plays a case of each.
"""

import zipfile
from collections.abc import Collection, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost.cli.commands import main
from devhost.flow.document import FlowFile
from devhost.trace.flow import FlowNode
from scripts import example_apps, ready_apps

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


@pytest.mark.parametrize("flow", FLOWS.values(), ids=FLOWS)
def test_an_app_tells_to_authorize_tools_just_if_they_need_it(flow: FlowFile) -> None:
    tools = [tool for node in flow.nodes.values() for tool in tools_of(node)]
    declared = [read_yaml(provider_file(*tool["provider_name"].split("/"))) for tool in tools]
    needs = any(each.get("credentials_for_provider") for each in declared)

    assert ("authorize the tools" in flow.path.read_text(encoding="utf-8")) == needs


def tools_of(node: FlowNode) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = node.data.get("agent_parameters", {}).get("tools", {}).get("value", [])
    return tools


def provider_file(author: str, plugin: str, provider: str) -> Path:
    return PLUGINS[author, plugin] / "provider" / f"{provider}.yaml"


def test_the_dependencies_keep_their_checksums_until_a_package_has_another() -> None:
    text = (EXAMPLES / "workflows" / "knowledge.yml").read_text("utf-8")
    manifest = read_yaml(ROOT / "manifest.yaml")
    ours = f"{manifest['author']}/{manifest['name']}:{manifest['version']}"

    once = example_apps.written(text, {ours: "a" * 64})

    assert f'{{"plugin_unique_identifier": "{ours}@{"a" * 64}"}}' in once
    assert example_apps.written(once, {}) == once


def missing(app: str, installed: Collection[str]) -> list[str]:
    """What an import reports: the daemon's `FetchMissingPluginInstallations` compares whole identifiers."""
    dependencies = yaml.safe_load(app)["dependencies"]
    named = [value for each in dependencies for key, value in each["value"].items() if key.endswith("identifier")]
    assert len(named) == len(dependencies)
    return [identifier for identifier in named if identifier not in installed]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("packages")
    made = {folder / f"{name}.difypkg": package for name, package in ready_apps.packages().items()}
    for file, package in made.items():
        file.write_bytes(package)
    return {file.stem: file for file in made}


def test_with_the_packages_installed_an_import_of_the_ready_copies_misses_nothing(
    packages: Mapping[str, Path], tmp_path: Path
) -> None:
    installed = {"@".join(example_apps.checksum(package.read_bytes())) for package in packages.values()}

    assert ready_apps.main([], tmp_path) == 0

    copies = {file.name: file.read_text("utf-8") for file in tmp_path.iterdir()}
    assert len(copies) == len(FLOWS)
    assert [each for app in copies.values() for each in missing(app, installed)] == []
    for flow in FLOWS.values():
        copy = copies.get(flow.path.name) or copies[f"{flow.path.parent.name}.yml"]
        assert yaml.safe_load(copy)["workflow"] == yaml.safe_load(flow.path.read_text("utf-8"))["workflow"]
        assert missing(flow.path.read_text("utf-8"), installed)


def test_a_signed_package_takes_the_place_of_the_one_that_was_made(
    packages: Mapping[str, Path], tmp_path: Path
) -> None:
    signed = packages["gpt5_agent"]
    with zipfile.ZipFile(signed, "a") as package:
        package.writestr(".verification.dify.json", "{}")  # as `dify signature sign` does

    assert ready_apps.main([str(signed)], tmp_path) == 0

    identifier = "@".join(example_apps.checksum(signed.read_bytes()))
    assert missing((tmp_path / "start_here.yml").read_text("utf-8"), {identifier}) == []


def test_a_checksum_is_that_of_dify_s_daemon() -> None:
    """The package and its checksum are recorded from the daemon 0.6.0, 2026-11-23."""
    recorded = read_yaml(ROOT / "devhost" / "tests" / "fixtures" / "dify" / "package-checksum.yaml")
    package = BytesIO()
    with zipfile.ZipFile(package, "w") as opened:
        for name, content in recorded["files"].items():
            opened.writestr(name, content)

    assert "@".join(example_apps.checksum(package.getvalue())) == recorded["identifier"]
