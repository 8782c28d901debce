"""The nodes of a turn as rows in a terminal; an agent's log tree, and the rounds of a loop, stand under their row."""

import json
from collections.abc import Iterable, Iterator, Mapping
from textwrap import indent
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from devhost.flow.document import FlowNode
from devhost.flow.view.nodes import Row, Rows
from devhost.terminal.tables.log import log_tree
from devhost.terminal.tables.text import clipped, preview, printable
from devhost.text.counted import counted

LONGEST = 200
"""Characters of a row's inputs or outputs, unless all of it is asked for."""
MARKS = {
    "succeeded": ("✓", "green"),
    "failed": ("✗", "red"),
    "exception": ("!", "yellow"),
    "": ("…", "yellow"),
}
GOES_ON = {
    "error branch": "the flow goes on at its error branch",
    "default value": "the flow goes on with its default value",
}
HIDDEN = frozenset({"usage", "json", "files"})
"""Outputs that a row leaves out; `--verbose` and `--json` have them."""


def node_rows(rows: Rows, *, whole: bool, now: float | None = None) -> RenderableType:
    """`whole`: all values and every round. `now`: on the clock of the rows, for those that have not ended."""
    return Group(*(_tree(row, whole=whole, now=now) for row in rows.roots))


def _tree(row: Row, *, whole: bool, now: float | None) -> Tree:
    tree = Tree(_line(row, whole=whole, now=now), guide_style="dim")
    if row.logs:
        run = None if row.ended is None else row.ended.run
        tree.add(log_tree(row.logs, {} if run is None else run.calls.sent, whole=whole))
    for number, rows in sorted(row.rounds.items()):
        if whole or any(map(_must_be_seen, rows)):
            branch = tree.add(Text(f"round {number}", "bold"))
            for inner in rows:
                branch.add(_tree(inner, whole=whole, now=now))
        else:
            tree.add(_folded(number, rows))
    return tree


def _must_be_seen(row: Row) -> bool:
    """Nothing that went wrong is folded, and no agent's tree."""
    return row.status != "succeeded" or bool(row.retries or row.logs) or any(map(_must_be_seen, row.inner))


def _folded(number: int, rows: Iterable[Row]) -> Text:
    line = Text(overflow="ellipsis", no_wrap=True)
    line.append(f"round {number}", "bold")
    for row in rows:
        mark, style = MARKS[row.status]
        line.append(f"  {mark} ", style)
        line.append(_title(row.node))
        line.append(_seconds(row), "cyan")
    return line


def _line(row: Row, *, whole: bool, now: float | None) -> Text:
    ended = row.ended
    mark, style = MARKS[row.status]
    fit: dict[str, Any] = {"overflow": "fold"} if whole else {"overflow": "ellipsis", "no_wrap": True}
    line = Text.assemble((f"{mark} ", style), (_title(row.node), "bold"), f"  {printable(row.node.type)}", **fit)
    line.append(_seconds(row), "cyan")
    for remark in _remarks(row, now):
        line.append(f"  {remark}", "yellow")
    for retry in row.retries:
        line.append(f"\n  attempt {retry.attempt} failed: {printable(retry.error)}", "yellow")
    if ended is None:
        return line
    if ended.error:
        line.append(f"\n  {printable(ended.error)}", "red")
    if ended.went_on:
        line.append(f"\n  {GOES_ON[ended.went_on]}", "yellow")
    outputs = {name: value for name, value in row.outputs.items() if whole or name not in HIDDEN}
    for name, values in (("in", row.inputs), ("out", outputs)):
        if values:
            line.append(f"\n  {name.ljust(3)} {_values(values, whole=whole)}", "dim")
    return line


def _seconds(row: Row) -> str:
    return "" if row.ended is None else f"  {row.ended.seconds:.3f} s"


def _remarks(row: Row, now: float | None) -> Iterator[str]:
    if row.ended is not None and (tokens := row.ended.metadata.get("total_tokens")):
        yield counted(tokens, "token")
    if row.waited:
        yield "a person was asked"
    if row.ended is None:
        yield "never finished" if now is None else f"not finished after {now - row.began:.1f} s"


def _title(node: FlowNode) -> str:
    return printable(node.title or node.id)


def _values(values: Mapping[str, object], *, whole: bool) -> str:
    if not whole:
        return clipped(printable(preview(dict(values))), LONGEST)
    return indent(printable(json.dumps(values, ensure_ascii=False, indent=2, default=str)), "      ").lstrip()
