"""Parts of a run as objects that rich prints."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import Any

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.style import Style
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from devhost.models.backend import ModelDescription
from devhost.node.outputs.outputs import Finding, LogEntry
from devhost.node.outputs.run import CallsMade, NodeError, RunError, sent_otherwise
from devhost.protocol.wire import JsonObject
from devhost.words import counted, in_a_line, price_text

# Texts for a line of a terminal: printable, on one line, cut.

LONGEST_VALUE, BEGINNING = 200, 40
"""Characters of a text variable on its one line; of a longer one, such as a state, its beginning and its length."""
_JOINERS = "\u200c\u200d\u2060"
"""Persian and emoji need the first two; the third is in tags that an answer quotes."""


def printable(value: object) -> str:
    """Without control characters: what comes from the wire must not move the cursor or reverse the line."""
    kept = f"\n\t{_JOINERS}"
    return "".join(letter if letter.isprintable() or letter in kept else "�" for letter in str(value))


def preview(value: object) -> str:
    """JSON on one line."""
    return " ".join(json.dumps(value, ensure_ascii=False, default=str).split())


def on_a_line(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[:BEGINNING]}… ({len(text):,} characters)"


def clipped(text: str, longest: int) -> str:
    left = len(text) - longest
    return f"{text[:longest]}… ({counted(left, 'more character')})" if left > 0 else text


# Why a run failed, and what the node shows of it in Dify.

LONGEST_ERROR = 2_000


def failure_text(error: RunError, *, traceback: bool) -> RenderableType:
    lines = [Text(printable(error.line), "red")]
    if error.traceback and traceback:
        lines.append(Text(printable(error.traceback.rstrip()), "dim"))
    elif error.traceback:
        lines.append(Text("--traceback prints the traceback.", "dim"))
    if error.node is not None:
        lines.append(_at_the_node(error, error.node, traceback=traceback))
    return Group(*lines)


def _at_the_node(error: RunError, node: NodeError, *, traceback: bool) -> Text:
    """The error as the failed node shows it in Dify."""
    inputs = "its inputs are kept" if node.inputs_kept else "its inputs are lost"
    if node.shows == error.message:
        return Text(f"Dify's node shows this message; {inputs}.", "dim")
    if error.traceback and not traceback:
        return Text(f"Dify's node shows it with its traceback, {len(node.shows):,} characters; {inputs}.", "dim")
    title = f"Dify's node shows ({len(node.shows):,} characters; {inputs}):\n"
    return Text.assemble((title, "bold"), clipped(printable(node.shows), LONGEST_ERROR))


# The log of a run as a tree.

COSTS = ("prompt_tokens", "completion_tokens")
FOR_PROGRAMS = frozenset({"request_ids", "tool_call_id", "status", "error", "finish_reason", *COSTS})
"""Fields of a log entry that its short form leaves out, or shows otherwise."""
_MARKS = {"success": ("✓", "green"), "error": ("✗", "red"), "start": ("…", "yellow")}


def log_tree(
    roots: Sequence[LogEntry],
    calls: CallsMade | None = None,
    *,
    whole: bool = False,
    open_for: Mapping[str, float] | None = None,
) -> RenderableType:
    """`calls`: what the tools got, shown where it differs from what the model wrote, and why they failed.

    `whole`: all that each entry holds; else the beginning, on one line. `open_for`: seconds, by the entry's id.
    """
    written = partial(_entry, calls=calls or CallsMade(), whole=whole, open_for=open_for or {})

    def branch(entry: LogEntry, tree: Tree) -> Tree:
        for child in entry.children:
            branch(child, tree.add(written(child)))
        return tree

    return Group(*(branch(root, Tree(written(root), guide_style="dim")) for root in roots))


def _entry(entry: LogEntry, *, calls: CallsMade, whole: bool, open_for: Mapping[str, float]) -> Text:
    mark, style = _MARKS[entry.status]
    fit: dict[str, Any] = {"overflow": "fold"} if whole else {"overflow": "ellipsis", "no_wrap": True}
    line = Text.assemble((f"{mark} ", style), printable(entry.label), **fit)
    elapsed = entry.metadata.get("elapsed_time")
    if isinstance(elapsed, int | float):
        line.append(f"  {elapsed:.3f} s", "cyan")
    if not whole and all(isinstance(entry.data.get(name), int) for name in COSTS):
        line.append(f"  {' → '.join(f'{entry.data[name]:,}' for name in COSTS)} tokens", "dim")
    if entry.status == "start":
        open_ = f"  not finished after {open_for[entry.id]:.1f} s" if entry.id in open_for else "  never finished"
        line.append(open_, "yellow")
    for said in _values(entry, whole=whole):
        line.append(f"\n{indent(printable(said), '  ')}", "dim")
    written, sent = entry.data.get("arguments", {}), calls.sent.get(_request(entry), {})
    if isinstance(written, dict) and (changed := sent_otherwise(written, sent)):
        line.append(f"\n  sent: {printable(preview(changed))}", "dim")
    if reason := calls.failures.get(_request(entry)) or entry.reason:
        line.append(f"\n{indent(printable(reason), '  ')}", "red")
    return line


def _values(entry: LogEntry, *, whole: bool) -> Iterator[str]:
    """What an entry holds; in short, nothing of a group, and of a call its arguments and its result."""
    if whole:
        if entry.data:
            yield json.dumps(entry.data, ensure_ascii=False, indent=2, default=str)
        return
    shown = {name: value for name, value in entry.data.items() if name not in FOR_PROGRAMS}
    if isinstance(arguments := shown.pop("arguments", None), dict):
        result = shown.pop("tool_response", "")
        shown = {**arguments, **shown}
        if result and not entry.error:
            yield from filter(None, (in_a_line(shown), f"→ {in_a_line(result)}"))
            return
    if shown and not entry.children:
        yield in_a_line(shown)


def _request(entry: LogEntry) -> str:
    """The id of its last request on the wire."""
    ids = entry.data.get("request_ids")
    return str(ids[-1]) if isinstance(ids, list) and ids else ""


# The outputs of a run: sources, files, variables, calls that wait, usage, findings.

LONGEST_ARGUMENTS = 500


def sources_table(sources: Sequence[object]) -> RenderableType:
    table = Table(box=None, pad_edge=False, show_header=False)
    for source in sources:
        if isinstance(source, dict):
            title, document = source.get("title") or "", source.get("document_id") or ""
            cited = ("cited", "green") if source.get("cited") else ("", "")
            table.add_row(
                Text(f"[{source.get('number', '?')}]"),
                Text(printable(title)),
                Text(printable(document), "dim"),
                Text(*cited),
            )
        else:
            table.add_row("", Text(printable(source)), "", "")
    return table


def files_list(files: Sequence[JsonObject]) -> RenderableType:
    """Two lines each: what the file is, and its path, which a terminal opens when it is clicked."""
    lines = []
    for file in files:
        path = str(file["path"])
        link = Style(link=Path(path).absolute().as_uri())
        lines.append(Text.assemble((printable(file["filename"]), "bold"), f"  {file_facts(file)}"))
        lines.append(Text.assemble("  ", (printable(path), link)))
    return Group(*lines)


def file_facts(file: JsonObject) -> str:
    return printable(f"{file.get('type')}, {file.get('mime_type')}, {counted(file.get('size') or 0, 'byte')}")


def variables_list(variables: Mapping[str, object]) -> RenderableType:
    width = max(len(name) for name in variables)
    lines = [Text(overflow="ellipsis", no_wrap=True) for _ in variables]
    for line, (name, value) in zip(lines, variables.items(), strict=True):
        line.append(printable(name).ljust(width), "bold")
        line.append(f"  {printable(on_a_line(value) if isinstance(value, str) else preview(value))}")
    return Group(*lines)


def pending_table(calls: Sequence[object]) -> RenderableType:
    """Each call with its arguments, because a person decides by them."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for call in calls:
        match call:
            case {"id": name, "tool": tool, "arguments": arguments}:
                shown = clipped(printable(preview(arguments)), LONGEST_ARGUMENTS)
                table.add_row(Text(printable(tool), "bold"), Text(shown, overflow="fold"), Text(printable(name), "dim"))
            case _:
                table.add_row("", Text(clipped(printable(preview(call)), LONGEST_ARGUMENTS), overflow="fold"), "")
    return table


def json_list(values: Sequence[object]) -> RenderableType:
    return Group(*(Text(printable(preview(value)), overflow="ellipsis", no_wrap=True) for value in values))


def usage_line(usage: object) -> Text:
    """A usage of another shape is printed as JSON: a variable called usage replaces it."""
    names = ("total_tokens", "prompt_tokens", "completion_tokens", "latency")
    known = usage if isinstance(usage, dict) else {}
    if not all(isinstance(known.get(name), int | float) for name in names) or "currency" not in known:
        return Text(printable(usage if isinstance(usage, str) else preview(usage)))
    total, prompt, completion, latency = (known[name] for name in names)
    price = printable(f"{price_text(known.get('total_price'))} {known['currency']}")
    costs = f" = {prompt:,} prompt + {completion:,} completion · {price} · {latency:.3f} s in the model"
    return Text.assemble((counted(total, "token"), "bold"), costs)


def findings_list(findings: Sequence[Finding]) -> RenderableType:
    return Group(*(Text.assemble((finding.rule, "yellow"), f": {printable(finding.sentence)}") for finding in findings))


# What is known before a run: its example, strategy, model and files; and the heading of a part.


def facts_table(
    example: str, description: str, strategy: str, model: ModelDescription, notices: Iterable[str] = ()
) -> Table:
    """The example, the strategy and the model of a run, and what to know before it."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    for name, fact in (("example", example), ("script", description), ("strategy", strategy)):
        if fact:
            facts.add_row(name, Text(fact))
    facts.add_row("model", Text(model.name))
    facts.add_row("", Text(model.notice, "yellow" if model.scripted else ""))
    for notice in notices:
        facts.add_row("notice", Text(printable(notice), "yellow"))
    return facts


def given_file(file: JsonObject) -> str:
    return f"{printable(file.get('filename'))} ({file_facts(file)})"


def heading(title: str) -> Rule:
    return Rule(Text(title, "bold cyan"), align="left", style="dim")
