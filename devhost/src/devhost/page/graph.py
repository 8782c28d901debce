"""Draws a flow: its nodes, its edges, and the path that a turn took through them."""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from devhost.page.layout import Layout, Point, layered
from devhost.trace.flow import TIMEOUT, FlowGraph, GraphEdge, GraphNode
from devhost.trace.played import NodeRow
from devhost.words import counted

NODE: Point = (172.0, 46.0)
INSIDE = 14.0
"""The space around the nodes in a container."""
HEADING = 30.0
"""The space for the heading of a container."""
COLUMNS = 18
"""The number of characters of a title that fit into a node."""
CHOSEN = ("selected_case_id", "class_id", "__action_id")
"""Output variables of branching nodes, whose value names the handle of the edge that the flow took."""
ERROR_BRANCH = "fail-branch"


@dataclass(frozen=True)
class DrawnNode:
    """A node as a box of the drawing."""

    title: str
    """The title, shortened to fit into the box."""
    words: str
    """The full title, the type and the state, for screen readers and as a tooltip."""
    type: str
    state: str
    """A class of the style sheet: `ran`, `failed`, `open` or `unused`."""
    anchor: str
    """The fragment that links to the row of the node; empty if it has no row."""
    mark: str
    """A sign for the state, with the number of executions if there are several."""
    place: Point
    size: Point
    is_container: bool


@dataclass(frozen=True)
class DrawnEdge:
    """An edge as a curve of the drawing."""

    path: str
    """The value of the SVG attribute `d`."""
    is_taken: bool
    """Whether the turn followed the edge."""


@dataclass(frozen=True)
class Drawing:
    """The drawing of a flow, ready for the template."""

    nodes: Sequence[DrawnNode]
    edges: Sequence[DrawnEdge]
    width: float
    height: float
    description: str


def drawing(graph: FlowGraph, anchors: Mapping[str, str], rows: Sequence[NodeRow]) -> Drawing:
    """Returns the drawing of a flow with the path of a turn.

    `anchors` has the fragment that links to each row, by the row's execution.
    """
    by_node: dict[str, list[NodeRow]] = {}
    for row in rows:
        by_node.setdefault(row.node.id, []).append(row)
    known: dict[str | None, str] = {node.id: node.id for node in graph.nodes}
    inner: dict[str | None, list[GraphNode]] = {}
    for node in graph.nodes:
        around = known.get(node.container)
        inner.setdefault(around, []).append(node)
    drawer = _Drawer(graph.edges, inner, by_node, anchors)
    size = drawer.draw(None, (2.0, 2.0), drawer.layout(None))
    taken = [each.title or each.id for each in graph.nodes if each.id in by_node]
    unused = [each.title or each.id for each in graph.nodes if each.id not in by_node]
    words = f"{counted(len(graph.nodes), 'node')}. Ran: {', '.join(taken) or 'none'}."
    if unused:
        words += f" Did not run: {', '.join(unused)}."
    return Drawing(drawer.nodes, sorted(drawer.edges, key=lambda edge: edge.is_taken), size[0] + 4, size[1] + 4, words)


class _Drawer:
    def __init__(
        self,
        edges: Sequence[GraphEdge],
        inner: Mapping[str | None, Sequence[GraphNode]],
        rows: Mapping[str, Sequence[NodeRow]],
        anchors: Mapping[str, str],
    ) -> None:
        self.nodes: list[DrawnNode] = []
        self.edges: list[DrawnEdge] = []
        self._edges = edges
        self._inner = inner
        self._rows = rows
        self._anchors = anchors
        self._layouts: dict[str | None, Layout] = {}

    def layout(self, container: str | None) -> Layout:
        """Lays out the nodes of a container, or the top-level nodes of the flow for `None`."""
        if container not in self._layouts:
            sizes = {node.id: self._size(node) for node in self._inner.get(container, ())}
            self._layouts[container] = layered(sizes, ((edge.source, edge.target) for edge in self._edges))
        return self._layouts[container]

    def _size(self, node: GraphNode) -> Point:
        if node.id not in self._inner:
            return NODE
        inside = self.layout(node.id)
        return max(inside.width + 2 * INSIDE, NODE[0]), inside.height + HEADING + INSIDE

    def draw(self, container: str | None, corner: Point, layout: Layout) -> Point:
        """Draws the nodes and edges of a container at a position and returns the container's inner size."""
        for (source, target), route in layout.routes.items():
            moved = [(x + corner[0], y + corner[1]) for x, y in route]
            between = [edge for edge in self._edges if (edge.source, edge.target) == (source, target)]
            self.edges.append(DrawnEdge(_curve(moved), any(map(self._is_taken, between))))
        for node in self._inner.get(container, ()):
            x, y = layout.places[node.id]
            place = (x + corner[0], y + corner[1])
            self.nodes.append(self._node(node, place))
            if node.id in self._inner:
                self.draw(node.id, (place[0] + INSIDE, place[1] + HEADING), self.layout(node.id))
        return layout.width, layout.height

    def _node(self, node: GraphNode, place: Point) -> DrawnNode:
        rows = self._rows.get(node.id, ())
        state = _state(rows)
        ended = {"ran": "ran", "failed": "failed", "open": "has not ended", "unused": "did not run"}[state]
        title = node.title or node.id
        words = f"{title}, {node.type}: {ended}"
        mark = {"ran": "✓", "failed": "✗", "open": "…", "unused": ""}[state]
        if len(rows) > 1:
            words = f"{words}, {counted(len(rows), 'time')}"
            mark = f"{mark} × {len(rows)}"
        return DrawnNode(
            title=_fitting(title),
            words=words,
            type=node.type,
            state=state,
            anchor=next((self._anchors.get(row.execution, "") for row in rows), ""),
            mark=mark,
            place=place,
            size=self._size(node),
            is_container=node.id in self._inner,
        )

    def _is_taken(self, edge: GraphEdge) -> bool:
        """Returns whether both nodes of an edge ran and the first one took this branch."""
        ended = [row for row in self._rows.get(edge.source, ()) if row.ended is not None]
        if edge.target not in self._rows:
            return False
        return any(edge.handle in _handles(row, edge.handle) for row in ended)


def _handles(row: NodeRow, handle: str) -> Iterator[str]:
    """Yields the handles through which the flow may have left a node, or `handle` if the outputs do not name one."""
    if row.ended is not None and row.ended.went_on == "error branch":
        yield ERROR_BRANCH
        return
    chosen = next((row.outputs[name] for name in CHOSEN if name in row.outputs), None)
    if chosen is not None:
        yield str(chosen) or TIMEOUT
    elif handle != ERROR_BRANCH:
        yield handle


def _state(rows: Iterable[NodeRow]) -> str:
    states = {row.status for row in rows}
    if not states:
        return "unused"
    if states & {"failed", "exception"}:
        return "failed"
    if "" in states:
        return "open"
    return "ran"


def _curve(points: Sequence[Point]) -> str:
    """Returns the path of a curve that is horizontal at each point."""
    (x, y), *others = points
    parts = [f"M{x:.1f} {y:.1f}"]
    for next_x, next_y in others:
        middle = (x + next_x) / 2
        parts.append(f"C{middle:.1f} {y:.1f} {middle:.1f} {next_y:.1f} {next_x:.1f} {next_y:.1f}")
        x = next_x
        y = next_y
    return "".join(parts)


def _fitting(title: str) -> str:
    """Returns as much of the title as fits into a node. A Chinese or Japanese character counts as two."""
    shown = ""
    left = COLUMNS
    for letter in title:
        left -= 2 if unicodedata.east_asian_width(letter) in {"W", "F"} else 1
        if left < 0:
            return f"{shown.rstrip()}…"
        shown += letter
    return shown
