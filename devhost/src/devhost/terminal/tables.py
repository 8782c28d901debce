"""Parts of a run as objects that rich prints."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from devhost.node.outputs.outputs import OPEN, Finding, LogEntry
from devhost.node.outputs.run import CallsMade, RunError, sent_otherwise
from devhost.protocol.wire import JsonObject
from devhost.trace.flow import FlowLine
from devhost.words import counted, in_a_line, preview, price_text

# Texts for a line of a terminal: printable, on one line, cut.

LONGEST_VALUE = 200
BEGINNING = 40
"""Characters of a text variable on its one line; of a longer one, such as a state, its beginning and its length."""
_JOINERS = "\u200c\u200d\u2060"
"""Persian and emoji need the first two; the third is in tags that an answer quotes."""


def printable(value: object) -> str:
    """Without control characters: what comes from the wire must not move the cursor or reverse the line."""
    kept = f"\n\t{_JOINERS}"
    return "".join(letter if letter.isprintable() or letter in kept else "�" for letter in str(value))


def on_a_line(text: str) -> str:
    return in_a_line(text if len(text) <= LONGEST_VALUE else f"{text[:BEGINNING]}… ({len(text):,} characters)")


def clipped(text: str, longest: int) -> str:
    left = len(text) - longest
    if left > 0:
        return f"{text[:longest]}… ({counted(left, 'more character')})"
    return text


# Why a run failed, and what the node shows of it in Dify.

LONGEST_ERROR = 2_000


def failure_text(error: RunError, *, traceback: bool) -> RenderableType:
    lines = [Text(printable(error.line), "red")]
    if error.traceback and not traceback:
        return Group(*lines, Text("--traceback prints the traceback.", "dim"))
    if error.traceback:
        lines.append(Text(printable(error.traceback.rstrip()), "dim"))
    if error.node is not None and error.node.shows != error.message:
        shows = clipped(printable(error.node.shows), LONGEST_ERROR)
        lines.append(Text.assemble(("Dify's node shows:\n", "bold"), shows))
    return Group(*lines)


# The log of a run as a tree.

COSTS = ("prompt_tokens", "completion_tokens")
FOR_PROGRAMS = frozenset({"request_ids", "tool_call_id", "status", "error", "finish_reason", *COSTS})
"""Fields of a log entry that its short form leaves out, or shows otherwise."""
_MARKS = {"success": ("✓", "green"), "error": ("✗", "red"), "start": ("…", "yellow")}


def log_tree(
    roots: Sequence[LogEntry], calls: CallsMade | None = None, *, whole: bool = False
) -> RenderableType | None:
    """`calls`: what the tools got, shown where it differs from what the model wrote, and why they failed.

    `whole`: all that each entry holds; else the beginning, on one line.
    """
    made = calls or CallsMade()

    def branch(entry: LogEntry, tree: Tree) -> Tree:
        for child in entry.children:
            branch(child, tree.add(_entry(child, made, whole=whole)))
        return tree

    trees = [branch(root, Tree(_entry(root, made, whole=whole), guide_style="dim")) for root in roots]
    if trees:
        return Group(*trees)
    return None


def _entry(entry: LogEntry, calls: CallsMade, *, whole: bool) -> Text:
    mark, style = _MARKS[entry.status]
    fit: dict[str, Any] = {"overflow": "fold"} if whole else {"overflow": "ellipsis", "no_wrap": True}
    line = Text.assemble((f"{mark} ", style), printable(entry.label), **fit)
    elapsed = entry.metadata.get("elapsed_time")
    if isinstance(elapsed, int | float):
        line.append(f"  {elapsed:.3f} s", "cyan")
    if not whole and all(isinstance(entry.data.get(name), int) for name in COSTS):
        line.append(f"  {' → '.join(f'{entry.data[name]:,}' for name in COSTS)} tokens", "dim")
    if entry.status == OPEN:
        line.append("  never finished", "yellow")
    for said in _values(entry, whole=whole):
        line.append(f"\n{indent(printable(said), '  ')}", "dim")
    ids = entry.data.get("request_ids")
    request = ""
    if isinstance(ids, list) and ids:
        request = str(ids[-1])
    written = entry.data.get("arguments", {})
    call = calls.tools.get(request)
    if call and isinstance(written, dict) and (changed := sent_otherwise(written, call.arguments)):
        line.append(f"\n  sent: {printable(preview(changed))}", "dim")
    if reason := (call and call.error) or entry.reason:
        line.append(f"\n{indent(printable(reason), '  ')}", "red")
    return line


def _values(entry: LogEntry, *, whole: bool) -> Iterator[str]:
    """What an entry holds; in short, nothing of a group, and of a call its arguments and its result."""
    if whole:
        if entry.data:
            yield json.dumps(entry.data, ensure_ascii=False, indent=2, default=str)
        return
    shown = {name: value for name, value in entry.unsaid.items() if name not in FOR_PROGRAMS}
    if isinstance(arguments := shown.pop("arguments", None), dict):
        result = shown.pop("tool_response", "")
        shown = {**arguments, **shown}
        if result and not entry.error:
            yield from filter(None, (in_a_line(shown), f"→ {in_a_line(result)}"))
            return
    if shown and not entry.children:
        yield in_a_line(shown)


# The outputs of a run: sources, files, variables, calls that wait, usage, findings; None where there are none.

LONGEST_ARGUMENTS = 500


def sources_table(sources: object) -> Table | None:
    """`sources`: the variable of that name."""
    if not isinstance(sources, list) or not sources:
        return None
    table = Table.grid(padding=(0, 1))
    for source in sources:
        if isinstance(source, dict):
            known = source
        else:
            known = {"title": source}
        table.add_row(
            Text(f"[{known.get('number', '?')}]"),
            Text(printable(known.get("title") or "")),
            Text(printable(known.get("document_id") or ""), "dim"),
            Text("cited" if known.get("cited") else "", "green"),
        )
    return table


def files_list(files: Sequence[JsonObject]) -> Group | None:
    """Two lines each: what the file is, and its path, which a terminal opens when it is clicked."""
    lines = []
    for file in files:
        path = str(file["path"])
        link = Style(link=Path(path).absolute().as_uri())
        lines.append(Text.assemble((printable(file["filename"]), "bold"), f"  {file_facts(file)}"))
        lines.append(Text.assemble("  ", (printable(path), link)))
    if lines:
        return Group(*lines)
    return None


def file_facts(file: JsonObject) -> str:
    return printable(f"{file.get('type')}, {file.get('mime_type')}, {counted(file.get('size') or 0, 'byte')}")


def variables_list(variables: Mapping[str, object]) -> Group | None:
    width = max(map(len, variables), default=0)
    lines = []
    for name, value in variables.items():
        if isinstance(value, str):
            shown = on_a_line(value)
        else:
            shown = preview(value)
        lines.append(_cut((printable(name).ljust(width), "bold"), f"  {printable(shown)}"))
    if lines:
        return Group(*lines)
    return None


def _cut(*parts: str | tuple[str, str]) -> Text:
    """A line that ends where the terminal does."""
    return Text.assemble(*parts, overflow="ellipsis", no_wrap=True)


def pending_table(calls: Sequence[object]) -> Table | None:
    """Each call with its arguments, because a person decides by them."""
    table = Table.grid(padding=(0, 1))
    for call in calls:
        if isinstance(call, dict):
            known = call
        else:
            known = {"arguments": call}
        arguments = clipped(printable(preview(known.get("arguments"))), LONGEST_ARGUMENTS)
        name, tool = (printable(known.get(key, "")) for key in ("id", "tool"))
        table.add_row(Text(tool, "bold"), Text(arguments, overflow="fold"), Text(name, "dim"))
    if calls:
        return table
    return None


def json_list(values: Sequence[object]) -> Group | None:
    if values:
        return Group(*(_cut(printable(preview(value))) for value in values))
    return None


def usage_line(usage: object) -> Text:
    """A usage of another shape is printed as JSON: a variable called usage replaces it."""
    match usage:
        case {
            "total_tokens": int(total),
            "prompt_tokens": int(prompt),
            "completion_tokens": int(completion),
            "latency": int() | float() as latency,
            "total_price": price,
            "currency": currency,
        }:
            price = printable(f"{price_text(price)} {currency}")
            costs = f" = {prompt:,} prompt + {completion:,} completion · {price} · {latency:.3f} s in the model"
            return Text.assemble((counted(total, "token"), "bold"), costs)
        case _:
            return Text(printable(usage if isinstance(usage, str) else preview(usage)))


def findings_list(findings: Sequence[Finding]) -> Group | None:
    lines = (Text.assemble((finding.rule, "yellow"), f": {printable(finding.sentence)}") for finding in findings)
    if findings:
        return Group(*lines)
    return None


def sections_of_findings(findings: Sequence[Finding]) -> Iterator[tuple[str, Group | None]]:
    """The findings under their headings. What Dify does not look at is not called its rule."""
    yield "violations of Dify's rules", findings_list([each for each in findings if each.is_of_dify])
    yield "what Dify does not check", findings_list([each for each in findings if not each.is_of_dify])


# What is known before a run, and the heading of a part.


def facts_table(
    example: str, description: str, strategy: str, model: ModelDescription, notices: Iterable[str] = ()
) -> Table:
    """The example, the strategy and the model of a run, and what to know before it."""
    facts = (("example", example), ("script", description), ("strategy", strategy), ("model", model.name))
    about_model = ("", Text(model.notice, "yellow" if model.scripted else ""))
    return fact_rows([*((name, Text(fact)) for name, fact in facts if fact), about_model], notices)


def fact_rows(facts: Iterable[tuple[str, Text]], notices: Iterable[str] = ()) -> Table:
    """Names with what is known, then the notices."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    for name, fact in [*facts, *(("notice", Text(printable(notice), "yellow")) for notice in notices)]:
        table.add_row(name, fact)
    return table


def flow_facts(flow: FlowLine, notices: Iterable[str] = (), model: str = "") -> Table:
    """A flow, its inputs, and what to know before it. `model`: what a person should know of it."""
    rows = [
        ("flow", Text(printable(titled(flow)))),
        ("model", Text(printable(model), "yellow")),
    ]
    if flow.inputs:
        rows.append(("inputs", Text(printable(preview(flow.inputs)))))
    return fact_rows([row for row in rows if row[1]], notices)


def titled(flow: FlowLine) -> str:
    if flow.node:
        return f"{flow.name} ({flow.kind}), the node {flow.node} alone"
    return f"{flow.name} ({flow.kind}, {counted(flow.nodes, 'node')})"


def given_file(file: JsonObject) -> str:
    """Describes a file of the question. The trace of a flow has only its name."""
    name = printable(file.get("filename"))
    if "size" in file:
        return f"{name} ({file_facts(file)})"
    return name


def heading(title: str) -> Rule:
    return Rule(Text(title, "bold cyan"), align="left", style="dim")
