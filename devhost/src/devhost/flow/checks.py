"""Finds what is wrong with a flow, or missing, before it starts.

Only `judged_by_engine` needs the engine, so most mistakes are reported before anything is installed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from devhost.errors import FlowFileError, naming
from devhost.flow.document import FlowFile, wrong_inputs
from devhost.flow.editor import missing_dependencies, not_published, unset_variables
from devhost.flow.forms import HUMAN_INPUT, wrong_forms
from devhost.flow.judgement import FlowFinding, Judge, notice
from devhost.flow.outside import NOTHING, OutsideAccess
from devhost.flow.own_tools import NO_ANSWERS, ToolAnswers, answered_names, names_of_dify, not_of_dify
from devhost.flow.tools import (
    agent_nodes,
    meant_strategy,
    missing_tools,
    tools_of,
    unknown_parameters,
    wrong_strategies,
    wrong_types,
)
from devhost.flow.turn import asked_engine
from devhost.plugin.declaration import PluginDeclaration
from devhost.tools.entity import ToolName
from devhost.trace.flow import TIMEOUT, FlowNode
from devhost.words import misspelt

PLAYED = frozenset(
    {
        *("start", "end", "answer", "if-else", "agent", "llm", "question-classifier", "parameter-extractor"),
        *("knowledge-retrieval", "code", "template-transform", "assigner", "variable-aggregator"),
        *("iteration", "iteration-start", "loop", "loop-start", "loop-end", "list-operator", "document-extractor"),
        *("http-request", "tool", "human-input"),
    }
)
"""The types of nodes that devhost plays (graphon 0.8.0; the Agent node is Dify's own)."""


NEW_AGENT = "dify_agent"
"""The `agent_node_kind` of Dify's new agent, whose node type is `agent`, like that of the classic agent."""


def wrong_in_graph(file: FlowFile) -> Iterator[FlowFinding]:
    """Finds faults that make all other checks impossible."""
    for node in file.nodes.values():
        if node.type not in PLAYED:
            there_are = ", ".join(sorted(PLAYED))
            sentence = f"{node} is of the type {node.type!r}, which devhost does not play; devhost plays: {there_are}"
            yield FlowFinding("devhost", sentence)
        elif node.data.get("agent_node_kind") == NEW_AGENT:
            yield FlowFinding("devhost", f"{node} is one of Dify's new agents, which have no strategy: it needs Dify")
    starts = [node for node in file.nodes.values() if node.type == "start"]
    triggers = [node for node in file.nodes.values() if node.type.startswith("trigger-")]
    if len(starts) != 1 and not triggers:
        has = ", ".join(map(str, starts)) or "none"
        yield FlowFinding("engine", f"a flow needs exactly one Start node, and this one has: {has}")
    named = dict.fromkeys(str(edge.get(end)) for edge in file.edges for end in ("source", "target"))
    for name in (name for name in named if name not in file.nodes):
        yield FlowFinding("engine", f"an edge names the node {misspelt(name, file.nodes)}; {naming(file.nodes)}")


# The branches at which edges leave a node. If a node has no branches, the engine follows all its edges, whatever their
# names are.

BRANCHES = {
    HUMAN_INPUT: ("user_actions", "id"),
    "if-else": ("cases", "case_id"),
    "question-classifier": ("classes", "id"),
}
"""For each type of node with branches, the key that lists the branches and the key of a branch's id."""
UNDECLARED = {HUMAN_INPUT: TIMEOUT, "if-else": "false"}
"""For some types of nodes, a branch that needs neither a declaration nor an edge."""


def wrong_branches(file: FlowFile) -> Iterator[str]:
    """Yields a sentence for each branch without an edge, and for each edge at an unknown branch."""
    for node in file.nodes.values():
        left = {str(edge.get("sourceHandle")) for edge in file.edges if edge.get("source") == node.id}
        branches = _branches(node)
        for name in branches or ():
            if name not in left:
                yield f"no edge leaves {node} at {name!r}: the flow ends there"
        names = ["source"]
        leads = "the engine goes there all the same"
        if branches is not None:
            names = branches
            leads = "the flow never goes there"
        # `fail-branch` is the name of an error strategy and of its branch.
        allowed = {*names, UNDECLARED.get(node.type), node.data.get("error_strategy")}
        for name in sorted(left - allowed):
            yield f"an edge leaves {node} at {misspelt(name, names)}, which it does not have: {leads}; {naming(names)}"


def _branches(node: FlowNode) -> list[str] | None:
    """Returns the names of a node's branches, or None for a node without branches."""
    listed, key = BRANCHES.get(node.type, ("", ""))
    branches = node.data.get(listed)
    if not isinstance(branches, list):
        return None
    return [str(each.get(key)) for each in branches if isinstance(each, dict)]


# All findings about a flow.


def judged(file: FlowFile, plugins: Sequence[PluginDeclaration]) -> list[FlowFinding]:
    """Returns all findings that do not need the engine. `plugins` are the plugins of the flow's agents."""
    if wrong := [*wrong_in_graph(file)]:
        return wrong
    of_engine = [FlowFinding("engine", sentence) for sentence in (*wrong_forms(file), *wrong_types(file))]
    if file.alone:
        return [*of_engine, *wrong_strategies(file, plugins)]
    meant = {node.id: meant_strategy(node, plugins) for node in agent_nodes(file)}
    strategies = {name: found.strategy for name, found in meant.items() if found is not None and found.is_own}
    return [
        *unset_variables(file, strategies),
        *not_published(file),
        *of_engine,
        *wrong_strategies(file, plugins),
        *map(notice, (*missing_dependencies(file), *wrong_branches(file), *_unused(file))),
    ]


def _unused(file: FlowFile) -> Iterator[str]:
    if file.unused:
        yield f"not used by devhost: {', '.join(file.unused)} of the package"


def judged_by_engine(file: FlowFile, found: Iterable[FlowFinding]) -> list[FlowFinding]:
    """Returns the engine's own objections. The engine is not asked if `found` already refuses the flow."""
    if any(each.refuses and each.by != "given" for each in found):
        return []
    said = asked_engine(file)
    if said is None:
        return [notice("Dify's engine was not asked: it is not installed here. devhost flow FILE installs and asks it")]
    return [FlowFinding("engine", sentence) for sentence in said]


def check_flow(  # noqa: PLR0913 - a flow needs all of these
    file: FlowFile,
    inputs: Mapping[str, object],
    plugins: Sequence[PluginDeclaration],
    tools: Iterable[PluginDeclaration] = (),
    allowed: OutsideAccess = NOTHING,
    *,
    recorded: Iterable[ToolName] = (),
    answers: ToolAnswers = NO_ANSWERS,
    servers: Collection[str] = (),
) -> tuple[str, ...]:
    """Checks a flow and returns the notices. Raises FlowFileError if the flow cannot be played.

    `plugins` are the plugins of the flow's agents, and `tools` are tool plugins. `servers` are the names of MCP
    servers, which report their tools only when they are connected.
    """
    declared = tools_of(tools)
    found = judged(file, plugins)
    if not any(each.by == "devhost" and each.refuses for each in found):
        given = tuple(not_allowed(file, allowed))
        if not file.alone:
            given = (*wrong_inputs(file, inputs), *given)
        answered = [*recorded, *answered_names(file, answers)]
        given += (*not_of_dify(file, allowed, [*declared, *answered]),)
        given += (*missing_tools(file, [*declared, *answered, *names_of_dify(file)], servers),)
        found += [FlowFinding("given", sentence) for sentence in given]
        found += map(notice, unknown_parameters(file, declared))
    refuse(file, (each.sentence for each in found if each.refuses))
    return tuple(f"{SAYS.get(each.by, '')}{each.sentence}" for each in found)


SAYS: Mapping[Judge, str] = {"editor": "Dify's editor does not publish this app: "}
"""The beginning of a notice, which depends on who objects."""


def not_allowed(file: FlowFile, allowed: OutsideAccess) -> Iterator[str]:
    for node in file.nodes.values():
        if (why := allowed.why_not(node.type, node.data)) is not None:
            yield f"{node} {why}"


def refuse(file: FlowFile, wrong: Iterable[str]) -> None:
    """Raises FlowFileError with one sentence per line if anything is wrong."""
    sentences = list(wrong)
    if sentences:
        raise FlowFileError(f"{file.path} cannot be played:" + "".join(f"\n  {sentence}" for sentence in sentences))
