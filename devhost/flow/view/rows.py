"""The nodes of a turn as rows, in the order in which they began; an agent's log tree stands under its row."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from devhost.flow.document import FlowNode
from devhost.flow.events import NodeEnded, NodeRetried, NodeStarted
from devhost.terminal.tables import clipped, log_tree, preview, printable

LONGEST = 200
"""Characters of a row's inputs or outputs, unless all of it is asked for."""
MARKS = {
    "succeeded": ("✓", "green"),
    "failed": ("✗", "red"),
    "exception": ("!", "yellow"),
    "stopped": ("✗", "red"),
    "paused": ("…", "yellow"),
    "": ("…", "yellow"),
}
GOES_ON = {
    "fail-branch": "the flow goes on at its error branch",
    "default-value": "the flow goes on with its default value",
}
"""By the node's error_strategy, what came of its error."""
HIDDEN = frozenset({"usage", "json", "files"})
"""Outputs that a row leaves out; `--verbose` and `--json` have them."""
SYSTEM = ("sys.", "conversation.", "env.")
"""A Start node puts these out beside its fields."""


@dataclass(frozen=True)
class Row:
    node: FlowNode
    ended: NodeEnded | None = None
    """None if it never ended."""
    retries: tuple[NodeRetried, ...] = ()


@dataclass
class Rows:
    """Of one turn, by the id of the execution."""

    rows: dict[str, Row] = field(default_factory=dict)

    def add(self, event: NodeStarted | NodeEnded | NodeRetried) -> None:
        row = self.rows.get(event.execution, Row(event.node))
        match event:
            case NodeEnded():
                row = replace(row, ended=event)
            case NodeRetried():
                row = replace(row, retries=(*row.retries, event))
        self.rows[event.execution] = row

    def of(self, container: str | None) -> list[Row]:
        return [row for row in self.rows.values() if row.node.container == container]


def node_rows(rows: Rows, *, whole: bool) -> RenderableType:
    """`whole`: all inputs and outputs, and every round of an iteration or a loop."""
    return Group(*(_tree(row, rows, whole=whole) for row in rows.of(None)))


def _tree(row: Row, rows: Rows, *, whole: bool) -> Tree:
    tree = Tree(_line(row, whole=whole), guide_style="dim")
    if row.ended is not None and row.ended.run is not None and row.ended.run.outputs.logs:
        tree.add(log_tree(row.ended.run.outputs.logs, row.ended.run.calls.sent, whole=whole))
    inner = rows.of(row.node.id)
    for child in inner if whole else _folded(inner):
        tree.add(_tree(child, rows, whole=True) if isinstance(child, Row) else child)
    return tree


def _folded(rows: Iterable[Row]) -> list[Text]:
    """A line for each node of a container, however many rounds there were."""
    by_node: dict[str, list[Row]] = {}
    for row in rows:
        by_node.setdefault(row.node.id, []).append(row)
    return [_summary(runs) for runs in by_node.values()]


def _summary(runs: list[Row]) -> Text:
    ended = [row.ended for row in runs if row.ended is not None]
    failed = [each for each in ended if each.status != "succeeded"]
    mark, style = MARKS["succeeded" if ended and not failed else "exception"]
    line = Text.assemble((f"{mark} ", style), (_title(runs[0].node), "bold"), f"  ×{len(runs)}")
    line.append(f"  {sum(each.seconds for each in ended):.3f} s", "cyan")
    if failed:
        line.append(f"\n  {len(failed)} failed: {printable(failed[0].error)}", "red")
    return line


def _line(row: Row, *, whole: bool) -> Text:
    ended = row.ended
    mark, style = MARKS["" if ended is None else ended.status]
    fit: dict[str, Any] = {"overflow": "fold"} if whole else {"overflow": "ellipsis", "no_wrap": True}
    line = Text.assemble((f"{mark} ", style), (_title(row.node), "bold"), f"  {row.node.type}", **fit)
    for retry in row.retries:
        line.append(f"\n  attempt {retry.attempt} failed: {printable(retry.error)}", "yellow")
    if ended is None:
        line.append("  never finished", "yellow")
        return line
    line.append(f"  {ended.seconds:.3f} s", "cyan")
    if ended.error:
        line.append(f"\n  {printable(ended.error)}", "red")
        if ended.status == "exception":
            line.append(f"\n  {GOES_ON.get(str(row.node.data.get('error_strategy')), 'the flow goes on')}", "yellow")
    for name, values in (("in", _inputs(row.node, ended)), ("out", _outputs(ended, whole=whole))):
        if values:
            line.append(f"\n  {name.ljust(3)} {_values(values, whole=whole)}", "dim")
    return line


def _title(node: FlowNode) -> str:
    return printable(node.title or node.id)


def _values(values: Mapping[str, object], *, whole: bool) -> str:
    text = printable(preview(dict(values)))
    return text if whole else clipped(text, LONGEST)


def _inputs(node: FlowNode, ended: NodeEnded) -> Mapping[str, object]:
    """A Variable Assigner of the engine gives its own data as its inputs."""
    return {} if node.type == "assigner" else ended.inputs


def _outputs(ended: NodeEnded, *, whole: bool) -> Mapping[str, object]:
    outputs = {name: value for name, value in ended.outputs.items() if not name.startswith(SYSTEM)}
    return outputs if whole else {name: value for name, value in outputs.items() if name not in HIDDEN}
