"""The flows of the examples fit together: nodes, edges, variables, parameters and tools all exist.

No Dify is there to import them. So these rules stand for what its import and its run would find: parameters and outputs
after the strategies' YAML. Whether the data of each node fit is seen on Dify's own engine (tests/flows).
"""

import re
import zipfile
from io import BytesIO
from typing import Any

import pytest

from scripts import example_apps

from .workflow import ROOT, Node, Workflow, read_yaml

EXAMPLES = ROOT / "examples"
WORKFLOWS = {f"{file.parent.name}/{file.stem}": Workflow.read(file) for file in sorted(EXAMPLES.glob("*/*.yml"))}
MANIFESTS = {file.parent: read_yaml(file) for file in sorted(EXAMPLES.glob("*/manifest.yaml"))}
PLUGINS = {(manifest["author"], manifest["name"]): folder for folder, manifest in MANIFESTS.items()}
NODES = {
    f"{name}-{node.id}": (workflow, node) for name, workflow in WORKFLOWS.items() for node in workflow.nodes.values()
}
AGENTS = {name: (workflow, node) for name, (workflow, node) in NODES.items() if node.type == "agent"}

every_workflow = pytest.mark.parametrize("workflow", WORKFLOWS.values(), ids=WORKFLOWS)
every_node = pytest.mark.parametrize(("workflow", "node"), NODES.values(), ids=NODES)
each_alone = pytest.mark.parametrize("node", [node for _, node in AGENTS.values()], ids=AGENTS)


@every_workflow
def test_it_is_the_dsl_of_a_flow(workflow: Workflow) -> None:
    assert workflow.app["kind"] == "app"
    assert re.fullmatch(r"\d+\.\d+\.\d+", str(workflow.app["version"]))
    last = {"advanced-chat": "answer", "workflow": "end"}[workflow.app["app"]["mode"]]
    assert {node.type for node in workflow.nodes.values() if not node.handles} == {last}
    assert [node.id for node in workflow.nodes.values() if node.type == "start"] == ["start"]
    for variable in workflow.app["workflow"]["conversation_variables"]:
        assert variable["selector"] == ["conversation", variable["name"]]
        assert variable["value"] == ""


@every_node
def test_the_id_of_a_node_is_unique_and_can_be_named_in_a_template(workflow: Workflow, node: Node) -> None:
    assert re.fullmatch(r"\w{1,50}", node.id)
    assert sum(each["id"] == node.id for each in workflow.app["workflow"]["graph"]["nodes"]) == 1


@every_workflow
def test_every_edge_joins_nodes_and_handles_that_exist(workflow: Workflow) -> None:
    ids = [edge["id"] for edge in workflow.app["workflow"]["graph"]["edges"]]
    assert len(set(ids)) == len(ids)
    for edge in workflow.edges:
        assert edge.handle in workflow.nodes[edge.source].handles
        assert workflow.nodes[edge.target].type != "start"
        assert edge.types == (workflow.nodes[edge.source].type, workflow.nodes[edge.target].type)


@every_node
def test_every_handle_leads_on_and_every_node_is_reached(workflow: Workflow, node: Node) -> None:
    assert {edge.handle for edge in workflow.edges if edge.source == node.id} == node.handles
    assert workflow.ways_to(node.id)


@every_node
def test_a_node_refers_only_to_what_exists_on_every_way_to_it(workflow: Workflow, node: Node) -> None:
    used = {selector for selector in node.selectors() if selector[0] != "$output"}

    for way in workflow.ways_to(node.id):
        assert used <= workflow.known_on(way)


@each_alone
def test_an_agent_gives_its_strategy_only_parameters_that_it_has(node: Node) -> None:
    declared = {parameter["name"]: parameter for parameter in node.strategy["parameters"]}
    given = node.data["agent_parameters"]

    assert set(given) <= set(declared)
    assert {name for name, parameter in declared.items() if parameter.get("required")} <= set(given)
    for name, parameter in given.items():
        assert parameter["type"] == ("variable" if declared[name]["type"] == "any" else "constant")
    manifest = read_yaml(ROOT / "manifest.yaml")
    provider = read_yaml(ROOT / manifest["plugins"]["agent_strategies"][0])["identity"]["name"]
    assert node.data["agent_strategy_provider_name"] == f"{manifest['author']}/{manifest['name']}/{provider}"
    assert node.data["agent_strategy_label"] == node.strategy["identity"]["label"]["en_US"]


def test_a_stale_app_is_written_again_and_nothing_else_in_it_changes() -> None:
    text = (EXAMPLES / "workflows" / "answer_schema.yml").read_text("utf-8")
    stale = text.replace('"The number with which the model', '"Changed').replace(
        "          meta: {", "          meta: {0: 1, "
    )

    assert stale != text
    assert example_apps.written(stale, {}) == text


def test_the_dependencies_keep_their_checksums_until_a_package_has_another() -> None:
    text = (EXAMPLES / "workflows" / "knowledge.yml").read_text("utf-8")
    manifest = read_yaml(ROOT / "manifest.yaml")
    ours = f"{manifest['author']}/{manifest['name']}:{manifest['version']}"

    once = example_apps.written(text, {ours: "a" * 64})

    assert f'{{"plugin_unique_identifier": "{ours}@{"a" * 64}"}}' in once
    assert example_apps.written(once, {}) == once


def test_of_a_published_plugin_the_dependency_is_the_release_that_dify_installs_from() -> None:
    ours = {"author": "a", "name": "agents", "version": "1.0.0", "repo": "https://github.com/me/agents"}
    tools = {"author": "a", "name": "tools", "version": "0.2.0"}

    assert example_apps.dependency(tools, {"a/tools:0.2.0": "c0ffee"}, ours) == {
        "type": "github",
        "value": {
            "repo": "me/agents",
            "version": "v1.0.0",
            "package": "tools-0.2.0.difypkg",
            "github_plugin_unique_identifier": "a/tools:0.2.0@c0ffee",
        },
    }


def test_a_checksum_is_that_of_dify_s_daemon() -> None:
    """The package and its checksum are recorded from the daemon 0.6.0, 2026-11-23."""
    recorded = read_yaml(ROOT / "devhost" / "tests" / "fixtures" / "dify" / "package-checksum.yaml")
    package = BytesIO()
    with zipfile.ZipFile(package, "w") as opened:
        for name, content in recorded["files"].items():
            opened.writestr(name, content)

    assert "@".join(example_apps.checksum(package.getvalue())) == recorded["identifier"]


def test_the_fields_of_an_answer_in_a_schema_can_be_chosen() -> None:
    _, agent = AGENTS["workflows/answer_schema-agent"]

    assert set(agent.data["output_schema"]["properties"]["structured_output"]["properties"]) == {
        *("topic", "who_acts", "reason")
    }


@each_alone
def test_an_agent_that_fails_leaves_a_sentence_for_the_user(node: Node) -> None:
    """In a branch, or as the default of its text."""
    defaults = [default["key"] for default in node.data.get("default_value", [])]
    assert (node.data["error_strategy"], defaults) in [
        ("fail-branch", []),
        ("default-value", ["text"]),
        ("default-value", ["text", "state"]),
    ]


@each_alone
def test_an_agents_tools_are_those_of_an_example(node: Node) -> None:
    for tool in node.data["agent_parameters"]["tools"]["value"]:
        author, plugin, provider = tool["provider_name"].split("/")
        folder = PLUGINS[author, plugin]
        assert read_yaml(folder / "provider" / f"{provider}.yaml")["identity"]["name"] == provider
        declared = read_yaml(folder / "tools" / f"{tool['tool_name']}.yaml")
        assert tool["tool_label"] == declared["identity"]["label"]["en_US"]
        assert set(tool["parameters"]) == _names(declared, "llm")
        assert set(tool["settings"]) == _names(declared, "form")


def _names(tool: dict[str, Any], form: str) -> set[str]:
    return {parameter["name"] for parameter in tool["parameters"] if parameter["form"] == form}
