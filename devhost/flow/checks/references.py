"""Variables that nothing sets: where Dify leaves the bare name in a text, or finds nothing."""

from collections.abc import Iterator, Mapping

from devhost.flow.checks.node_types import outputs_of
from devhost.flow.checks.selectors import Selector, selectors_of
from devhost.flow.document import FlowFile, FlowNode
from devhost.plugin.declaration import Strategy

OF_EVERY_FLOW = frozenset({"user_id", "app_id", "workflow_id", "workflow_run_id", "files", "timestamp"})
OF_A_CHATFLOW = frozenset({"query", "conversation_id", "dialogue_count"})
OF_A_FORM = "$output"
"""A field of the form itself, in the content of a Human Input node."""


def unset_variables(file: FlowFile, strategies: Mapping[str, Strategy]) -> Iterator[str]:
    for node in file.nodes.values():
        for selector in sorted(selectors_of(node)):
            if selector[0] != OF_A_FORM and (problem := _problem(file, strategies, selector)):
                yield f"{node} refers to {'.'.join(selector)}: {problem}"


def _problem(file: FlowFile, strategies: Mapping[str, Strategy], selector: Selector) -> str | None:
    source, name = selector[:2]
    match source:
        case "sys":
            known = OF_EVERY_FLOW | OF_A_CHATFLOW if file.is_chatflow else OF_EVERY_FLOW
            only = " (a workflow has no conversation)" if name in OF_A_CHATFLOW else ""
            return None if name in known else f"there is no such system variable{only}; there are: {_listed(known)}"
        case "conversation":
            return _declared("conversation variable", name, {each.name for each in file.conversation_variables})
        case "env":
            return _declared("environment variable", name, {each.name for each in file.environment_variables})
        case _:
            return _of_node(file.nodes.get(source), file, strategies, name)


def _declared(kind: str, name: str, known: set[str]) -> str | None:
    return None if name in known else f"the flow declares no {kind} {name!r}; there are: {_listed(known)}"


def _of_node(node: FlowNode | None, file: FlowFile, strategies: Mapping[str, Strategy], name: str) -> str | None:
    if node is None:
        return f"there is no node with this id; there are: {_listed(file.nodes)}"
    outputs = outputs_of(node, strategies)
    if outputs is None or name in outputs:
        return None
    return f"{node} puts out no {name!r}; it puts out: {_listed(outputs)}"


def _listed(names: "frozenset[str] | set[str] | Mapping[str, FlowNode]") -> str:
    return ", ".join(sorted(names)) or "none"
