"""What Dify's editor says about an app before it publishes it, in its own words; devhost plays it all the same.

The rules are those of docs/host-facts.md, "Outputs in the editor", "Before an app is published" and "Dependencies of an
app".
"""

from collections.abc import Iterable, Iterator, Mapping

from devhost.flow.checks.graph import reached
from devhost.flow.checks.node_types import OF_A_FAILURE, OF_AN_AGENT
from devhost.flow.checks.selectors import selectors_of
from devhost.flow.document import FlowFile, FlowNode
from devhost.flow.tools.named import named_tools
from devhost.plugin.declaration import Strategy

INVALID = "Invalid variable. Please select an existing variable."
UNCONNECTED = "This step is not connected to anything"
NOT_LOOKED_INTO = frozenset({"agent", "assigner", "document-extractor"})
"""Types of nodes whose references the editor does not check."""
REQUIRED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "answer": (("answer", "Answer"),),
    "end": (("outputs", "output variable"),),
    "code": (("code", "Code"),),
    "template-transform": (("template", "Code"),),
    "knowledge-retrieval": (("dataset_ids", "Knowledge"),),
    "question-classifier": (("query_variable_selector", "Input Variables"), ("classes", "Class")),
    "parameter-extractor": (("query", "Input Variable"), ("parameters", "Extract Parameters")),
    "iteration": (("iterator_selector", "Input"), ("output_selector", "Output Variables")),
    "list-operator": (("variable", "Input Variable"),),
    "document-extractor": (("variable_selector", "Assigned Variable"),),
    "http-request": (("url", "API"),),
}
"""By the type of a node, the fields that must not be empty, with their English labels in the editor."""


def not_published(file: FlowFile, strategies: Mapping[str, Strategy]) -> Iterator[str]:
    """Why the editor refuses to publish the app: the node's title, what the editor says, and what is behind it."""
    connected = reached(file)
    for node in file.nodes.values():
        said = [*_empty_fields(node, strategies), *_invalid_variables(file, node)]
        if node.id not in connected:
            said.append(f"{UNCONNECTED} (it never runs: draw an edge to it, or delete it)")
        yield from (f"Dify's editor does not publish this app: [{node.title or node.id}] {each}" for each in said)
    if file.is_chatflow and not any(node.type == "answer" for node in file.nodes.values()):
        yield "Dify's editor does not publish this app: Answer node must be added"


def missing_dependencies(file: FlowFile, strategies: Iterable[Strategy]) -> Iterator[str]:
    """Plugins of the app's agents and tools that its `dependencies` do not name."""
    providers = [tool.provider for tool in named_tools(file, strategies)]
    providers += [str(node.data.get("agent_strategy_provider_name", "")) for node in file.nodes.values()]
    used = {provider.rpartition("/")[0] for provider in providers if provider.count("/") == 2}  # noqa: PLR2004 - author/plugin/provider
    if missing := sorted(used - file.dependencies):
        yield (
            f"dependencies does not name {', '.join(missing)}: when Dify imports the app, it does not offer a plugin "
            "that is not installed. (Dify's own export leaves out the plugins of Agent nodes)"
        )


def _invalid_variables(file: FlowFile, node: FlowNode) -> Iterator[str]:
    """The editor knows an agent's outputs by the node's own data alone."""
    if node.type in NOT_LOOKED_INTO:
        return
    for name, output in sorted({selector[:2] for selector in selectors_of(node)}):
        source = file.nodes.get(name)
        if source is None or source.type != "agent" or output in _offered(source):
            continue
        yield (
            f"{INVALID} ({name}.{output}: the output_schema of {source} in this file does not have it; begin with "
            "an app that has it, or read it from json in a Code node)"
        )


def _offered(agent: FlowNode) -> frozenset[str]:
    schema = agent.data.get("output_schema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    failure = OF_A_FAILURE if agent.data.get("error_strategy") == "fail-branch" else frozenset()
    return OF_AN_AGENT | failure | frozenset(properties if isinstance(properties, dict) else ())


def _empty_fields(node: FlowNode, strategies: Mapping[str, Strategy]) -> Iterator[str]:
    for field, label in REQUIRED.get(node.type, ()):
        if not node.data.get(field):
            yield f"{label} is required"
    if node.type == "human-input" and not any(_enabled(each) for each in node.data.get("delivery_methods") or ()):
        yield "Please enable at least one delivery method"
    strategy = strategies.get(str(node.data.get("agent_strategy_name")))
    given = node.data.get("agent_parameters")
    if node.type != "agent" or strategy is None or not isinstance(given, dict):
        return
    for parameter in strategy.parameters:
        setting = given.get(parameter.name)
        value = setting.get("value") if isinstance(setting, dict) else None
        if parameter.required and not (value or parameter.default):
            yield f"{parameter.label.en_US} is required"


def _enabled(method: object) -> bool:
    return isinstance(method, dict) and bool(method.get("enabled"))
