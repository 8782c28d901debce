"""What is wrong with a flow, or missing for it, said before it starts.

Nothing here needs the engine, so that a mistake is told before anything is installed.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from packaging.version import InvalidVersion, Version

from devhost.errors import FlowFileError
from devhost.flow.document import FlowFile, wrong_inputs
from devhost.flow.forms import wrong_forms
from devhost.flow.outside import NOTHING, Allowed
from devhost.flow.tools import (
    missing_tools,
    named_tools,
    names_of,
    of_other_providers,
    unknown_parameters,
    wrong_strategies,
)
from devhost.node.parameters import ToolName
from devhost.plugin.declaration import PluginDeclaration, Strategy
from devhost.trace.flow import FlowNode

TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "object": dict,
    "boolean": bool,
    "array": list,
}


def wrong_variables(file: FlowFile) -> Iterator[str]:
    """Conversation variables whose value in the file is not of the declared type; the engine checks the members."""
    for variable in file.conversation_variables:
        expected = TYPES.get(variable.value_type.partition("[")[0])
        of_type = expected is None or variable.value is None or isinstance(variable.value, expected)
        if not of_type or (isinstance(variable.value, bool) and variable.value_type in {"number", "integer"}):
            yield (
                f"the conversation variable {variable.name!r} is declared as {variable.value_type}, "
                f"and its value is {variable.value!r:.100}: correct one of them"
            )


# HTTP requests and code are allowed by the command.


def not_allowed(file: FlowFile, allowed: Allowed) -> Iterator[str]:
    for node in file.nodes.values():
        if (why := allowed.why_not(node.type, node.data)) is not None:
            yield f"{node} {why}"


# The types of nodes, and what each puts into the variable pool (graphon 0.8.0; the Agent node is Dify's own).

type Outputs = frozenset[str] | None
"""None if any name may be there."""

PLAYED = frozenset(
    {
        *("start", "end", "answer", "if-else", "agent", "llm", "question-classifier", "parameter-extractor"),
        *("knowledge-retrieval", "code", "template-transform", "assigner", "variable-aggregator"),
        *("iteration", "iteration-start", "loop", "loop-start", "loop-end", "list-operator", "document-extractor"),
        *("http-request", "tool", "human-input"),
    }
)
HELP = {
    "trigger-webhook": "give the flow a Start node, and what the trigger brings as its fields",
    "trigger-schedule": "give the flow a Start node",
    "trigger-plugin": "give the flow a Start node, and what the trigger brings as its fields",
    "variable-assigner": "it is the old Variable Aggregator: add a new one in its place",
    "datasource": "a knowledge pipeline runs only in Dify",
    "knowledge-index": "a knowledge pipeline runs only in Dify",
}
"""What would help, by the type of a node that devhost does not play."""
OF_A_FAILURE = frozenset({"error_message", "error_type"})
OF_AN_AGENT = frozenset({"text", "files", "json", "usage"})
FIXED: Mapping[str, frozenset[str]] = {
    "llm": frozenset({"text", "usage", "reasoning_content", "structured_output", "files", "finish_reason"}),
    "knowledge-retrieval": frozenset({"result"}),
    "template-transform": frozenset({"output"}),
    "question-classifier": frozenset({"class_name", "class_id", "class_label", "usage"}),
    "http-request": frozenset({"body", "status_code", "headers", "files"}),
    "list-operator": frozenset({"result", "first_record", "last_record"}),
    "document-extractor": frozenset({"text"}),
    "iteration": frozenset({"output", "item", "index"}),
    "if-else": frozenset({"result", "selected_case_id"}),
    "answer": frozenset({"answer", "files"}),
}


def outputs_of(node: FlowNode, strategies: Mapping[str, Strategy]) -> Outputs:
    """The names behind which another node may find something."""
    found = _own_outputs(node, strategies)
    return found if found is None or not node.data.get("error_strategy") else found | OF_A_FAILURE


def _own_outputs(node: FlowNode, strategies: Mapping[str, Strategy]) -> Outputs:
    if node.type in FIXED:
        return FIXED[node.type]
    named = NAMED.get(node.type)
    if named is not None:
        return named(node)
    if node.type == "agent":
        strategy = strategies.get(str(node.data.get("agent_strategy_name")))
        return None if strategy is None or strategy.output_schema is None else OF_AN_AGENT | _properties(strategy)
    return None


def _properties(strategy: Strategy) -> frozenset[str]:
    properties = (strategy.output_schema or {}).get("properties")
    return frozenset(properties if isinstance(properties, dict) else ())


def _names(entries: object, key: str) -> frozenset[str]:
    """What each entry of a list has under a key."""
    listed = entries if isinstance(entries, list) else []
    return frozenset(str(entry[key]) for entry in listed if isinstance(entry, dict) and key in entry)


def _of_code(node: FlowNode) -> Outputs:
    outputs = node.data.get("outputs")
    return frozenset(outputs if isinstance(outputs, dict) else ())


def _of_aggregator(node: FlowNode) -> Outputs:
    settings = node.data.get("advanced_settings")
    if isinstance(settings, dict) and settings.get("group_enabled"):
        return _names(settings.get("groups"), "group_name")
    return frozenset({"output"})


NAMED: Mapping[str, Callable[[FlowNode], Outputs]] = {
    "start": lambda node: _names(node.data.get("variables"), "variable"),
    "code": _of_code,
    "variable-aggregator": _of_aggregator,
    "parameter-extractor": lambda node: (
        _names(node.data.get("parameters"), "name") | {"__is_success", "__reason", "__usage"}
    ),
    "loop": lambda node: _names(node.data.get("loop_variables"), "label") | {"loop_round"},
    "human-input": lambda node: (
        _names(node.data.get("inputs"), "output_variable_name") | {"__action_id", "__rendered_content"}
    ),
}

SOURCE = "source"
"""Where an edge leaves a node that has no branches."""
AFTER_AN_ERROR = frozenset({"success-branch", "fail-branch"})


def handles_of(node: FlowNode) -> frozenset[str]:
    """Where edges may leave the node."""
    match node.type:
        case "if-else":
            return (_names(node.data.get("cases"), "case_id") or frozenset({"true"})) | {"false"}
        case "question-classifier":
            branches = _names(node.data.get("classes"), "id")
        case "human-input":
            return _names(node.data.get("user_actions"), "id") | {"__timeout"}
        case _:
            branches = frozenset({SOURCE})
    return branches | AFTER_AN_ERROR if node.data.get("error_strategy") == "fail-branch" else branches


# The variables that a node refers to, found in its data: in templates, and where a selector stands.

type Selector = tuple[str, ...]

_IN_A_TEXT = re.compile(r"\{\{#([a-zA-Z0-9_]{1,50}(?:\.[a-zA-Z_][a-zA-Z0-9_]{0,29}){1,10})#\}\}")
_SELECTOR_KEYS = frozenset({"query", "variable", "iterator_selector", "output_selector"})
"""Keys that hold a selector if they hold a list; so does every key that ends so."""
_ENDING = "selector"
_SOURCES = ("type", "input_type", "value_type")
"""Keys that say with "variable" that the value beside them is a selector."""


def selectors_of(node: FlowNode) -> frozenset[Selector]:
    return frozenset(_found(_settings_that_refer(node)))


def _settings_that_refer(node: FlowNode) -> Mapping[str, object]:
    """Of a Variable Assigner that clears a variable, the value is not read."""
    items = node.data.get("items")
    if node.type != "assigner" or not isinstance(items, list):
        return node.data
    return {**node.data, "items": [_without_unread(item) for item in items if isinstance(item, dict)]}


def _without_unread(item: Mapping[str, object]) -> Mapping[str, object]:
    if item.get("operation") != "clear":
        return item
    return {key: value for key, value in item.items() if key != "value"}


def _found(value: object, key: str = "") -> Iterator[Selector]:
    match value:
        case str():
            yield from (tuple(name.split(".")) for name in _IN_A_TEXT.findall(value))
        case dict():
            if any(value.get(source) == "variable" for source in _SOURCES):
                yield from _selector(value.get("value"))
            for name, inner in value.items():
                yield from _found(inner, str(name))
        case list() if key.endswith(_ENDING) or key in _SELECTOR_KEYS:
            yield from _selector(value)
        case list():
            for inner in value:
                if key == "variables" and isinstance(inner, list):  # of a Variable Aggregator
                    yield from _selector(inner)
                yield from _found(inner)


def _selector(value: object) -> Iterator[Selector]:
    if isinstance(value, list) and len(value) > 1 and all(isinstance(part, str) for part in value):
        yield tuple(value)


# The graph: types of nodes, edges between nodes that exist, one start, and the nodes that it leads to.


def wrong_in_graph(file: FlowFile) -> Iterator[str]:
    for node in file.nodes.values():
        if node.type not in PLAYED:
            help_ = HELP.get(node.type)
            advice = help_ or f"devhost plays: {', '.join(sorted(PLAYED))}"
            yield f"{node} is of the type {node.type!r}, which devhost does not play; {advice}"
    for edge in file.edges:
        id_, ends = edge.get("id"), f"{edge.get('source')!r} to {edge.get('target')!r}"
        named = f"edge {id_!r}" if id_ else f"the edge from {ends}"
        for end in ("source", "target"):
            if edge.get(end) not in file.nodes:
                yield f"{named} has the {end} {edge.get(end)!r}, and there is no node with this id"
        source = file.nodes.get(str(edge.get("source")))
        handle = str(edge.get("sourceHandle") or SOURCE)
        if source is not None and handle not in (known := handles_of(source)):
            yield (
                f"{named} leaves {source} at {handle!r}, which the node does not have; "
                f"it has: {', '.join(sorted(known))}{_advice(handle)}"
            )
    yield from _wrong_start(file)


def _advice(handle: str) -> str:
    if handle not in AFTER_AN_ERROR:
        return ""
    return ". For a branch after an error, set the node's error_strategy to fail-branch"


def _wrong_start(file: FlowFile) -> Iterator[str]:
    starts = [node for node in file.nodes.values() if node.type == "start"]
    if len(starts) != 1:
        found = ", ".join(map(str, starts)) or "none"
        yield f"a flow needs exactly one Start node, and this one has: {found}"
    elif len(file.nodes) > 1 and not any(edge.get("source") == starts[0].id for edge in file.edges):
        yield f"no edge leads from {starts[0]} to another node: draw one to the node that comes next"


def reached(file: FlowFile) -> frozenset[str]:
    """The nodes that a way from the Start node leads to, with those inside of a container."""
    found, waiting = set[str](), [node.id for node in file.nodes.values() if node.type == "start"]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [str(edge.get("target")) for edge in file.edges if edge.get("source") == name]
            waiting += [node.id for node in file.nodes.values() if node.container == name]
    return frozenset(found)


# Variables that nothing sets: where Dify leaves the bare name in a text, or finds nothing.

OF_EVERY_FLOW = frozenset({"user_id", "app_id", "workflow_id", "workflow_run_id", "files", "timestamp"})
OF_A_CHATFLOW = frozenset({"query", "conversation_id", "dialogue_count"})
OF_A_FORM = "$output"
"""A field of the form itself, in the content of a Human Input node."""


def unset_variables(file: FlowFile, strategies: Mapping[str, Strategy]) -> Iterator[str]:
    for node in file.nodes.values():
        for selector in sorted(selectors_of(node)):
            if selector[0] != OF_A_FORM and (problem := _why_unset(file, strategies, selector)):
                yield f"{node} refers to {'.'.join(selector)}: {problem}"


def _why_unset(file: FlowFile, strategies: Mapping[str, Strategy], selector: Selector) -> str | None:
    source, name = selector[:2]
    match source:
        case "sys":
            known = OF_EVERY_FLOW | OF_A_CHATFLOW if file.is_chatflow else OF_EVERY_FLOW
            only = " (a workflow has no conversation)" if name in OF_A_CHATFLOW else ""
            return None if name in known else f"there is no such system variable{only}; there are: {_listing(known)}"
        case "conversation":
            return _declared("conversation variable", name, {each.name for each in file.conversation_variables})
        case "env":
            return _declared("environment variable", name, {each.name for each in file.environment_variables})
        case _:
            return _of_node(file.nodes.get(source), file, strategies, name)


def _declared(kind: str, name: str, known: set[str]) -> str | None:
    return None if name in known else f"the flow declares no {kind} {name!r}; there are: {_listing(known)}"


def _of_node(node: FlowNode | None, file: FlowFile, strategies: Mapping[str, Strategy], name: str) -> str | None:
    if node is None:
        return f"there is no node with this id; there are: {_listing(file.nodes)}"
    outputs = outputs_of(node, strategies)
    if outputs is None or name in outputs:
        return None
    return f"{node} puts out no {name!r}; it puts out: {_listing(outputs)}"


def _listing(names: "frozenset[str] | set[str] | Mapping[str, FlowNode]") -> str:
    return ", ".join(sorted(names)) or "none"


# What Dify's editor says about an app before it publishes it, in its own words; devhost plays it all the same.
#
# Of the rules in docs/host-facts.md, "Outputs in the editor", "Before an app is published" and "Dependencies of an
# app", those that a person does not see in the editor's own panel of the node.

INVALID = "Invalid variable. Please select an existing variable."
UNCONNECTED = "This step is not connected to anything"
NOT_LOOKED_INTO = frozenset({"agent", "assigner", "document-extractor"})
"""Types of nodes whose references the editor does not check."""


def not_published(file: FlowFile) -> Iterator[str]:
    """Why the editor refuses to publish the app: the node's title, what the editor says, and what is behind it."""
    connected = reached(file)
    for node in file.nodes.values():
        said = list(_invalid_variables(file, node))
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


# All checks of a flow.

DSL = Version("0.6.0")
"""The newest version of Dify's DSL that devhost was written for."""


def check_flow(  # noqa: PLR0913 - what a flow is played with
    file: FlowFile,
    inputs: Mapping[str, object],
    plugin: PluginDeclaration | None,
    tools: Iterable[PluginDeclaration] = (),
    allowed: Allowed = NOTHING,
    *,
    recorded: Iterable[ToolName] = (),
    servers: Collection[str] = (),
) -> tuple[str, ...]:
    """`plugin`: that of the flow's agents, None for a flow without one; `tools`: tool plugins. Out: the notices.

    `servers`: the names of MCP servers, which say what tools they have when they are connected: `check_tools`.
    """
    strategies, tools = _strategies(plugin), tuple(tools)
    wrong = wrong_in_file(file, plugin)
    if not list(wrong_in_graph(file)):  # what follows would only repeat it in other words
        wrong += wrong_inputs(file, inputs)
        wrong += not_allowed(file, allowed)
        wrong += missing_tools(file, strategies.values(), [*names_of(tools), *recorded], servers)
        wrong += unknown_parameters(file, tools)
    refuse(file, wrong)
    others = () if plugin is None else of_other_providers(file, plugin)
    return (*_newer(file), *seen_in_the_editor(file, plugin), *others)


def check_tools(file: FlowFile, plugin: PluginDeclaration | None, there_are: Iterable[ToolName]) -> None:
    """FlowFileError for tools that are not among these."""
    refuse(file, missing_tools(file, _strategies(plugin).values(), there_are))


def wrong_in_file(file: FlowFile, plugin: PluginDeclaration | None) -> list[str]:
    """What makes the file unplayable, whatever else is given."""
    if wrong := [*_wrong_version(file), *wrong_in_graph(file)]:
        return wrong
    wrong = [*unset_variables(file, _strategies(plugin)), *wrong_forms(file), *wrong_variables(file)]
    return wrong if plugin is None else [*wrong, *wrong_strategies(file, plugin)]


def seen_in_the_editor(file: FlowFile, plugin: PluginDeclaration | None) -> list[str]:
    """What Dify's editor says about the app when it is imported or published."""
    return [*not_published(file), *missing_dependencies(file, _strategies(plugin).values())]


def _strategies(plugin: PluginDeclaration | None) -> dict[str, Strategy]:
    return {} if plugin is None else {name: strategy for name, (_, strategy) in plugin.strategies.items()}


def refuse(file: FlowFile, wrong: Iterable[str]) -> None:
    """FlowFileError if anything is wrong; one sentence a line."""
    sentences = list(wrong)
    if sentences:
        raise FlowFileError(f"{file.path} cannot be played:" + "".join(f"\n  {sentence}" for sentence in sentences))


def _wrong_version(file: FlowFile) -> list[str]:
    try:
        version = Version(file.version or str(DSL))
    except InvalidVersion:
        return [f"version: {file.version!r} is not a version of Dify's DSL, such as {DSL}"]
    if version.major > DSL.major:
        return [f"version: the file is DSL {version}, and devhost reads {DSL.major}.x; export it from an older Dify"]
    return []


def _newer(file: FlowFile) -> list[str]:
    if not file.version or Version(file.version) <= DSL:
        return []
    return [f"the file is DSL {file.version}, newer than {DSL}: new fields of its nodes have no effect here"]
