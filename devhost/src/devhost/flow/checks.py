"""What is wrong with a flow, or missing for it, said before it starts.

Nothing here needs the engine, so that a mistake is told before anything is installed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain

from devhost.errors import FlowFileError, naming
from devhost.flow.document import FlowFile, start_fields, wrong_inputs
from devhost.flow.forms import HUMAN_INPUT, wrong_forms
from devhost.flow.outside import NOTHING, Allowed
from devhost.flow.tools import missing_tools, named_tools, tools_of, unknown_parameters, wrong_strategies
from devhost.node.parameters import REFERENCE
from devhost.plugin.declaration import PluginDeclaration, Strategy
from devhost.text import properties_of
from devhost.tools.entity import ToolName
from devhost.trace.flow import TIMEOUT, FlowNode

PLAYED = frozenset(
    {
        *("start", "end", "answer", "if-else", "agent", "llm", "question-classifier", "parameter-extractor"),
        *("knowledge-retrieval", "code", "template-transform", "assigner", "variable-aggregator"),
        *("iteration", "iteration-start", "loop", "loop-start", "loop-end", "list-operator", "document-extractor"),
        *("http-request", "tool", "human-input"),
    }
)
"""The types of nodes (graphon 0.8.0; the Agent node is Dify's own)."""


def wrong_in_graph(file: FlowFile) -> Iterator[str]:
    for node in file.nodes.values():
        if node.type not in PLAYED:
            there_are = ", ".join(sorted(PLAYED))
            yield f"{node} is of the type {node.type!r}, which devhost does not play; devhost plays: {there_are}"
    starts = [node for node in file.nodes.values() if node.type == "start"]
    if len(starts) != 1:
        yield f"a flow needs exactly one Start node, and this one has: {', '.join(map(str, starts)) or 'none'}"
    named = dict.fromkeys(str(edge.get(end)) for edge in file.edges for end in ("source", "target"))
    for name in (name for name in named if name not in file.nodes):
        yield f"an edge names the node {name!r}; {naming(file.nodes)}"


BRANCHES = {
    HUMAN_INPUT: ("user_actions", "id"),
    "if-else": ("cases", "case_id"),
    "question-classifier": ("classes", "id"),
}
"""By a node's type: where its branches are declared, and the key of their ids."""


def wrong_branches(file: FlowFile) -> Iterator[str]:
    for node in file.nodes.values():
        listed, key = BRANCHES.get(node.type, ("", ""))
        if isinstance(branches := node.data.get(listed), list):
            names = [str(each.get(key)) for each in branches if isinstance(each, dict)]
            left = {str(edge.get("sourceHandle")) for edge in file.edges if edge.get("source") == node.id}
            yield from (f"no edge leaves {node} at {name!r}: the flow ends there" for name in names if name not in left)
            for name in sorted(left.difference(names, {TIMEOUT, "false"})):  # these are not declared
                yield f"an edge leaves {node} at {name!r}, which it does not have; {naming(names)}"


# The variables that a node refers to, found in its data: in templates, and where a selector stands.

type Reference = tuple[str, str]
"""A node, or `sys`, `conversation` or `env`, and the name of its variable; what a selector names inside is left out."""


def references_of(node: FlowNode) -> list[Reference]:
    return sorted(set(_found(node.data)))


def _found(value: object, key: str = "") -> Iterator[Reference]:
    match value:
        case str():
            for name in REFERENCE.findall(value):
                yield from _selector(name.split("."))
        case dict():
            if any(value.get(key) == "variable" for key in ("type", "input_type", "value_type")):
                yield from _selector(value.get("value"))
            for name, inner in value.items():
                yield from _found(inner, str(name))
        case list() if key.endswith("selector") or key in {"query", "variable"}:
            yield from _selector(value)
        case list():
            for inner in value:
                if key == "variables" and isinstance(inner, list):  # of a Variable Aggregator
                    yield from _selector(inner)
                yield from _found(inner)


def _selector(value: object) -> Iterator[Reference]:
    match value:
        case [str(source), str(name), *_]:
            yield source, name


# Variables that nothing sets: where Dify leaves the bare name in a text, or finds nothing.

OF_EVERY_FLOW = frozenset({"user_id", "app_id", "workflow_id", "workflow_run_id", "files", "timestamp"})
OF_A_CHATFLOW = frozenset({"query", "conversation_id", "dialogue_count"})
OF_AN_AGENT = frozenset({"text", "files", "json", "usage"})
OF_A_FAILURE = frozenset({"error_message", "error_type"})
OUTSIDE_NODES = frozenset({"sys", "env", "conversation"})
OF_A_FORM = "$output"
"""A field of the form itself, in the content of a Human Input node."""


def unset_variables(file: FlowFile, strategies: Mapping[str, Strategy]) -> Iterator[str]:
    for node in file.nodes.values():
        for source, name in references_of(node):
            space, variable = _behind_start(file, source, name)
            known = _known(file, strategies, space)
            if space != OF_A_FORM and known is not None and variable not in known:
                what = file.nodes.get(space, space)
                yield f"{node} refers to {source}.{name}: {what} has no {variable!r}; {naming(sorted(known))}"


def _behind_start(file: FlowFile, source: str, name: str) -> Reference:
    """A Start node puts out all variables that there are when it runs, as `sys.query`: here the variable itself."""
    node = file.nodes.get(source)
    space, dot, variable = name.partition(".")
    if node is not None and node.type == "start" and dot and space in OUTSIDE_NODES:
        return space, variable
    return source, name


def _known(file: FlowFile, strategies: Mapping[str, Strategy], source: str) -> Collection[str] | None:
    """The names behind a source; None where it is not known what a node puts out."""
    match source:
        case "sys":
            return OF_EVERY_FLOW | OF_A_CHATFLOW if file.is_chatflow else OF_EVERY_FLOW
        case "conversation":
            return {each.name for each in file.conversation_variables}
        case "env":
            return {each.name for each in file.environment_variables}
    node = file.nodes.get(source)
    if node is None:
        return ()
    if node.type == "start":
        return start_fields(file)
    strategy = strategies.get(str(node.data.get("agent_strategy_name"))) if node.type == "agent" else None
    if strategy is None or strategy.output_schema is None:
        return None
    return _outputs(node, strategy.output_schema)


def _outputs(agent: FlowNode, schema: object) -> frozenset[str]:
    """`schema`: the output schema of its strategy, or its own."""
    return OF_AN_AGENT.union(properties_of(schema), OF_A_FAILURE if agent.data.get("error_strategy") else ())


# What Dify's editor and an import say about an app; devhost plays it all the same.
#
# The sources are in docs/host-facts.md, "Outputs in the editor" and "Dependencies of an app".

INVALID = "Dify's editor does not publish this app: [{title}] Invalid variable. Please select an existing variable."
NOT_LOOKED_INTO = frozenset({"agent", "assigner", "document-extractor"})
"""Types of nodes whose references the editor does not check."""


def not_published(file: FlowFile) -> Iterator[str]:
    """The editor knows an agent's outputs by the node's own data alone."""
    for node in file.nodes.values():
        for name, output in references_of(node) if node.type not in NOT_LOOKED_INTO else ():
            agent = file.nodes.get(name)
            if agent is None or agent.type != "agent":
                continue
            if output not in _outputs(agent, agent.data.get("output_schema")):
                yield (
                    f"{INVALID.format(title=node.title or node.id)} ({name}.{output}: the output_schema of {agent} in "
                    "this file does not have it; begin with an app that has it, or read it from json in a Code node)"
                )


def missing_dependencies(file: FlowFile) -> Iterator[str]:
    """Plugins of the app's agents and tools that its `dependencies` do not name."""
    providers = [provider for _, (provider, _) in named_tools(file)]
    providers += [str(node.data.get("agent_strategy_provider_name", "")) for node in file.nodes.values()]
    used = {provider.rpartition("/")[0] for provider in providers if provider.count("/") == 2}  # noqa: PLR2004 - author/plugin/provider
    if missing := sorted(used.difference(file.dependencies)):
        yield (
            f"dependencies does not name {', '.join(missing)}: when Dify imports the app, it does not offer a plugin "
            "that is not installed. (Dify's own export leaves out the plugins of Agent nodes)"
        )


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

    `servers`: the names of MCP servers, which say what tools they have when they are connected.
    """
    declared = tools_of(tools)
    not_allowed = ((node, allowed.why_not(node.type, node.data)) for node in file.nodes.values())
    given = chain(
        wrong_inputs(file, inputs),
        (f"{node} {why}" for node, why in not_allowed if why is not None),
        missing_tools(file, [*declared, *recorded], servers),
        unknown_parameters(file, declared),
    )
    refuse(file, wrong_in_file(file, plugin, given))
    return tuple(seen_in_the_editor(file))


def wrong_in_file(file: FlowFile, plugin: PluginDeclaration | None, given: Iterable[str] = ()) -> list[str]:
    """What makes the file unplayable. `given`: what is wrong with the rest; not for a wrong graph."""
    if wrong := list(wrong_in_graph(file)):
        return wrong
    strategies = {} if plugin is None else {name: strategy for name, (_, strategy) in plugin.strategies.items()}
    of_agents = () if plugin is None else wrong_strategies(file, plugin)
    return [*unset_variables(file, strategies), *wrong_forms(file), *of_agents, *given]


def seen_in_the_editor(file: FlowFile) -> list[str]:
    """What Dify's editor says about the app when it is imported or published, or shows in its graph."""
    return [*not_published(file), *missing_dependencies(file), *wrong_branches(file)]


def refuse(file: FlowFile, wrong: Iterable[str]) -> None:
    """FlowFileError if anything is wrong; one sentence a line."""
    sentences = list(wrong)
    if sentences:
        raise FlowFileError(f"{file.path} cannot be played:" + "".join(f"\n  {sentence}" for sentence in sentences))
