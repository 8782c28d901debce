"""Finds what Dify's editor objects to when an app is imported or published: variables, nodes and dependencies.

The sources are in docs/host-facts.md, "Apps".
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from devhost.errors import naming
from devhost.flow.document import FlowFile, start_fields
from devhost.flow.judgement import FlowFinding, notice
from devhost.flow.tools import named_entries
from devhost.node.parameters import REFERENCE
from devhost.plugin.declaration import Strategy
from devhost.text import properties_of
from devhost.trace.flow import FlowNode
from devhost.words import misspelt

# The variables that a node refers to, found in the templates and selectors of its data.


class Reference(NamedTuple):
    """A reference to a variable."""

    source: str
    """A node's id, or `sys`, `conversation` or `env`."""
    name: str
    """The name of the variable. Further keys in a selector are left out."""
    in_text: bool = False
    """Whether the reference is in a template."""


def references_of(node: FlowNode) -> list[Reference]:
    return sorted(set(_found(node.data)))


def _found(value: object, key: str = "") -> Iterator[Reference]:
    match value:
        case str():
            for name in REFERENCE.findall(value):
                yield from _selector(name.split("."), in_text=True)
        case dict():
            if any(value.get(key) == "variable" for key in ("type", "input_type", "value_type")):
                yield from _selector(value.get("value"))
            for name, inner in value.items():
                yield from _found(inner, str(name))
        case list() if key.endswith("selector") or key in {"query", "variable"}:
            yield from _selector(value)
        case list():
            for inner in value:
                if key == "variables" and isinstance(inner, list):  # a selector of a Variable Aggregator
                    yield from _selector(inner)
                yield from _found(inner)


def _selector(value: object, *, in_text: bool = False) -> Iterator[Reference]:
    match value:
        case [str(source), str(name), *_]:
            yield Reference(source, name, in_text)


# Variables that nothing sets. Dify leaves their bare name in the text, or finds no value.

OF_EVERY_FLOW = frozenset({"user_id", "app_id", "workflow_id", "workflow_run_id", "files", "timestamp"})
OF_A_CHATFLOW = frozenset({"query", "conversation_id", "dialogue_count"})
OF_AN_AGENT = frozenset({"text", "files", "json", "usage"})
OF_A_FAILURE = frozenset({"error_message", "error_type"})
OUTSIDE_NODES = frozenset({"sys", "env", "conversation"})
OF_A_FORM = "$output"
"""The source of a reference to a field of the form itself, in the content of a Human Input node."""
NOT_LOOKED_INTO = frozenset({"agent", "assigner", "document-extractor"})
"""Types of nodes whose references the editor does not check."""
GO_ON_WITHOUT = frozenset({"answer", "code", "end", "http-request", "template-transform", "variable-aggregator"})
"""Types of nodes that the engine runs even if a variable that they refer to is missing."""
GO_ON_WITHOUT_IN_TEXT = frozenset({"agent", "tool"})
"""Types of nodes that leave the bare name of a missing variable in a template."""


def unset_variables(file: FlowFile, strategies: Mapping[str, Strategy]) -> Iterator[FlowFinding]:
    """Finds references to variables that nothing sets. `strategies` maps the id of an Agent node to its strategy."""
    for node in file.nodes.values():
        for reference in references_of(node):
            meant = meant_reference(file, reference)
            known = _known(file, strategies, meant.source)
            if meant.source != OF_A_FORM and known is not None and meant.name not in known:
                yield _judged(node, reference, _why_unset(file, meant, known))


def _judged(node: FlowNode, reference: Reference, why: str) -> FlowFinding:
    sentence = f"{node} refers to {reference.source}.{reference.name}: {why}"
    goes_on = node.type in GO_ON_WITHOUT or (reference.in_text and node.type in GO_ON_WITHOUT_IN_TEXT)
    if reference.source not in OUTSIDE_NODES and node.type not in NOT_LOOKED_INTO:
        return FlowFinding("editor", sentence, plays=node.type == "variable-aggregator")  # uses its next source
    if goes_on:
        return notice(f"{sentence}. Dify plays it and leaves the bare name, or nothing, in its place")
    return FlowFinding("engine", sentence)


def meant_reference(file: FlowFile, reference: Reference) -> Reference:
    """Resolves a reference such as `sys.query` of a Start node to the variable itself.

    A Start node outputs all variables that exist when it runs.
    """
    node = file.nodes.get(reference.source)
    space, dot, variable = reference.name.partition(".")
    if node is not None and node.type == "start" and dot and space in OUTSIDE_NODES:
        return Reference(space, variable)
    return reference


def _why_unset(file: FlowFile, meant: Reference, known: Collection[str]) -> str:
    if meant.source in file.nodes or meant.source in OUTSIDE_NODES:
        what = file.nodes.get(meant.source, meant.source)
        return f"{what} has no {meant.name!r}; {naming(sorted(known))}"
    name = misspelt(meant.source, file.nodes)
    if meant.source.isdecimal():  # the ids that Dify generates all look alike
        name = repr(meant.source)
    return f"there is no node {name}; {naming(file.nodes)}"


def _known(file: FlowFile, strategies: Mapping[str, Strategy], source: str) -> Collection[str] | None:
    """Returns the names of a source's variables, or None if the outputs of a node are not known."""
    match source:
        case "sys":
            return {*OF_EVERY_FLOW, *(OF_A_CHATFLOW if file.is_chatflow else ())}
        case "conversation":
            return {each.name for each in file.conversation_variables}
        case "env":
            return {each.name for each in file.environment_variables}
    node = file.nodes.get(source)
    if node is None:
        return ()
    if node.type == "start":
        return start_fields(file)
    strategy = strategies.get(node.id)
    if strategy is None or strategy.output_schema is None:
        return None
    return _outputs(node, strategy.output_schema)


def _outputs(agent: FlowNode, schema: object) -> frozenset[str]:
    """Returns the names of an agent's outputs. `schema` is the output schema of its strategy or of the agent itself."""
    outputs = OF_AN_AGENT.union(properties_of(schema))
    if agent.data.get("error_strategy"):
        return outputs | OF_A_FAILURE
    return outputs


# Faults that keep the editor from publishing an app, although devhost plays it.


def not_published(file: FlowFile) -> Iterator[FlowFinding]:
    of_nodes = (*_unknown_outputs(file), *_unconnected(file), *_of_the_other_kind(file))
    for sentence in (*of_nodes, *_same_outputs(file), *_without_answer(file)):
        yield FlowFinding("editor", sentence, plays=True)


def _unknown_outputs(file: FlowFile) -> Iterator[str]:
    """Finds references to unknown outputs of agents. The editor knows these outputs only from the node's own data."""
    looked_into = (node for node in file.nodes.values() if node.type not in NOT_LOOKED_INTO)
    for node in looked_into:
        for name, output, _ in references_of(node):
            agent = file.nodes.get(name)
            if agent is None or agent.type != "agent":
                continue
            if output not in _outputs(agent, agent.data.get("output_schema")):
                why = (
                    f"{name}.{output}: the output_schema of {agent} in this file does not have it; begin with an app "
                    "that has it, or read it from json in a Code node"
                )
                yield f"[{node.title or node.id}] Invalid variable. Please select an existing variable. ({why})"


def _unconnected(file: FlowFile) -> Iterator[str]:
    """Finds nodes that cannot be reached from Start. Nodes inside an iteration or a loop are not checked separately."""
    leads = defaultdict[str, list[str]](list)
    for edge in file.edges:
        leads[str(edge.get("source"))].append(str(edge.get("target")))
    reached = {node.id for node in file.nodes.values() if node.type == "start"}
    ahead = list(reached)
    while ahead:
        found = set(leads[ahead.pop()]) - reached
        reached |= found
        ahead += found
    for node in file.nodes.values():
        if node.container is None and node.id not in reached:
            yield f"[{node.title or node.id}] This step is not connected to anything (Start does not lead to {node})"


ENDS = {True: ("chatflow", "end"), False: ("workflow", "answer")}
"""For chatflows (True) and workflows (False), the kind of the app and a type of node that only the other kind has."""


def _of_the_other_kind(file: FlowFile) -> Iterator[str]:
    kind, refused = ENDS[file.is_chatflow]
    for node in file.nodes.values():
        if node.type == refused:
            yield f"a {kind} has no nodes of the type {refused!r}, as {node} is, and difyctl does not import it"


def _same_outputs(file: FlowFile) -> Iterator[str]:
    named = defaultdict[str, list[FlowNode]](list)
    for node in file.nodes.values():
        outputs = node.data.get("outputs")
        if node.type != "end" or not isinstance(outputs, list):
            continue
        for output in outputs:
            if isinstance(output, dict) and str(output.get("variable") or "").strip():
                named[str(output["variable"]).strip()].append(node)
    for name, nodes in named.items():
        if len(nodes) > 1:
            where = ", ".join(dict.fromkeys(map(str, nodes)))
            yield f'Duplicate Output node variable "{name}". Output node variable names must be unique. ({where})'


def _without_answer(file: FlowFile) -> Iterator[str]:
    if file.is_chatflow and not any(node.type == "answer" for node in file.nodes.values()):
        yield "The Answer node must be added"


# Plugins that Dify does not offer to install on import.


def missing_dependencies(file: FlowFile) -> Iterator[str]:
    """Reports the plugins of the app's agents and tools that are missing from its `dependencies`."""
    providers = [entry.tool[0] for entry in named_entries(file)]
    providers += [str(node.data.get("agent_strategy_provider_name", "")) for node in file.nodes.values()]
    used = {provider.rpartition("/")[0] for provider in providers if provider.count("/") == 2}  # noqa: PLR2004 - author/plugin/provider
    if missing := sorted(used.difference(file.dependencies)):
        yield (
            f"dependencies does not name {', '.join(missing)}: when Dify imports the app, it does not offer a plugin "
            "that is not installed. (Dify's own export leaves out the plugins of Agent nodes)"
        )
