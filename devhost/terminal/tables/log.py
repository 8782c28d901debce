"""The log of a run as a tree."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from textwrap import indent
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from devhost.node.outputs.log import LogEntry
from devhost.protocol.wire import JsonObject
from devhost.terminal.tables.text import preview, printable

FOR_PROGRAMS = frozenset({"request_ids"})
"""Fields of a log entry that its one line leaves out."""
_MARKS = {"success": ("✓", "green"), "error": ("✗", "red"), "start": ("…", "yellow")}


def log_tree(
    roots: Sequence[LogEntry],
    sent: Mapping[str, JsonObject] | None = None,
    *,
    whole: bool = False,
    open_for: Mapping[str, float] | None = None,
) -> RenderableType:
    """`sent`: by the id of the request, what each tool got; shown where it differs from what the model wrote.

    `whole`: all that each entry holds; else the beginning, on one line. `open_for`: seconds, by the entry's id.
    """
    written = partial(_entry, sent=sent or {}, whole=whole, open_for=open_for or {})

    def branch(entry: LogEntry, tree: Tree) -> Tree:
        for child in entry.children:
            branch(child, tree.add(written(child)))
        return tree

    return Group(*(branch(root, Tree(written(root), guide_style="dim")) for root in roots))


def _entry(entry: LogEntry, *, sent: Mapping[str, JsonObject], whole: bool, open_for: Mapping[str, float]) -> Text:
    mark, style = _MARKS[entry.status]
    fit: dict[str, Any] = {"overflow": "fold"} if whole else {"overflow": "ellipsis", "no_wrap": True}
    line = Text.assemble((f"{mark} ", style), printable(entry.label), **fit)
    elapsed = entry.metadata.get("elapsed_time")
    if isinstance(elapsed, int | float):
        line.append(f"  {elapsed:.3f} s", "cyan")
    if entry.status == "start":
        open_ = f"  not finished after {open_for[entry.id]:.1f} s" if entry.id in open_for else "  never finished"
        line.append(open_, "yellow")
    if entry.error:
        line.append(f"\n  {printable(entry.error)}", "red")
    if whole and entry.data:
        line.append(
            "\n" + indent(printable(json.dumps(entry.data, ensure_ascii=False, indent=2, default=str)), "  "), "dim"
        )
    elif shown := {name: value for name, value in entry.data.items() if name not in FOR_PROGRAMS}:
        line.append(f"\n  {printable(preview(shown))}", "dim")
    if changed := _sent_otherwise(entry, sent):
        line.append(f"\n  sent: {printable(preview(changed))}", "dim")
    return line


def _sent_otherwise(entry: LogEntry, sent: Mapping[str, JsonObject]) -> JsonObject:
    """What the tool got and the model did not write: values of another type, defaults, the panel's values."""
    ids, written = entry.data.get("request_ids"), entry.data.get("arguments", {})
    last = ids[-1] if isinstance(ids, list) and ids else None
    if not isinstance(last, str) or not isinstance(written, dict):
        return {}
    return {
        name: value
        for name, value in sent.get(last, {}).items()
        if name not in written or (type(value), value) != (type(written[name]), written[name])
    }
