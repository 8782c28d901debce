"""The graph: types of nodes, edges between nodes that exist, one start, and the nodes that it leads to."""

from collections.abc import Iterator

from devhost.flow.checks.node_types import AFTER_AN_ERROR, HELP, PLAYED, SOURCE, handles_of
from devhost.flow.document import FlowFile


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
