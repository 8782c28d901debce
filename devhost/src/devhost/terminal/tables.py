"""Renders the parts of a run as objects that rich can print."""

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

# Texts for the terminal: printable, on one line, and shortened.

LONGEST_VALUE = 200
BEGINNING = 40
"""How many characters are shown of a text variable that is longer than `LONGEST_VALUE`, such as a state."""
_JOINERS = "\u200c\u200d\u2060"
"""Invisible characters that are kept. Persian and emoji need the first two; quoted tags in an answer have the third."""


def printable(value: object) -> str:
    """Returns the text without control characters, so that received text cannot move the cursor or reverse the line."""
    kept = f"\n\t{_JOINERS}"
    return "".join(letter if letter.isprintable() or letter in kept else "�" for letter in str(value))


def on_a_line(text: str) -> str:
    """Returns a text on one line, or the beginning and the length of a long one."""
    return in_a_line(text if len(text) <= LONGEST_VALUE else f"{text[:BEGINNING]}… ({len(text):,} characters)")


def clipped(text: str, longest: int) -> str:
    """Returns a text cut off after `longest` characters, with the number of characters that are left out."""
    left = len(text) - longest
    if left > 0:
        return f"{text[:longest]}… ({counted(left, 'more character')})"
    return text


# The error of a failed run, and how Dify's node shows it.

LONGEST_ERROR = 2_000


def failure_text(error: RunError, *, traceback: bool) -> RenderableType:
    """Returns the error of a run, and the text that Dify's node shows if it differs."""
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
"""Fields of a log entry that its short form leaves out or shows in another way."""
_MARKS = {"success": ("✓", "green"), "error": ("✗", "red"), "start": ("…", "yellow")}


def log_tree(
    roots: Sequence[LogEntry], calls: CallsMade | None = None, *, whole: bool = False
) -> RenderableType | None:
    """Returns the log of a run as a tree, or `None` if it is empty.

    `calls` has the arguments that the tools received and their errors. The arguments are shown if they differ from
    those that the model wrote. With `whole`, an entry is complete; otherwise its beginning is shown on one line.
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
    """Yields the values of an entry. The short form has only the arguments and the result of a call."""
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


# The outputs of a run: sources, files, variables, pending calls, usage and findings. Each function returns `None` if
# there is nothing to show.

LONGEST_ARGUMENTS = 500


def sources_table(sources: object) -> Table | None:
    """Returns a table of the output variable `sources`."""
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
    """Returns two lines for each file: its name with facts about it, and its path as a link."""
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
    """Returns a line that is cut off at the right edge of the terminal."""
    return Text.assemble(*parts, overflow="ellipsis", no_wrap=True)


def pending_table(calls: Sequence[object]) -> Table | None:
    """Returns a table of the calls that wait for approval, with the arguments that a person needs for the decision."""
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
    """Returns the usage on one line, or as JSON if it has another shape, because an output variable can replace it."""
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
    """Yields the findings under two headings: violations of Dify's rules, and what Dify does not check."""
    yield "violations of Dify's rules", findings_list([each for each in findings if each.is_of_dify])
    yield "what Dify does not check", findings_list([each for each in findings if not each.is_of_dify])


# Facts that are known before a run, and the heading of a section.


def facts_table(
    example: str, description: str, strategy: str, model: ModelDescription, notices: Iterable[str] = ()
) -> Table:
    """Returns a table with the example, the script, the strategy, the model and the notices of a run."""
    facts = (("example", example), ("script", description), ("strategy", strategy), ("model", model.name))
    about_model = ("", Text(model.notice, "yellow" if model.scripted else ""))
    return fact_rows([*((name, Text(fact)) for name, fact in facts if fact), about_model], notices)


def fact_rows(facts: Iterable[tuple[str, Text]], notices: Iterable[str] = ()) -> Table:
    """Returns a table with a row for each fact and each notice."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    for name, fact in [*facts, *(("notice", Text(printable(notice), "yellow")) for notice in notices)]:
        table.add_row(name, fact)
    return table


def flow_facts(flow: FlowLine, notices: Iterable[str] = (), model: str = "") -> Table:
    """Returns a table with a flow, its inputs and notices. `model` is a remark about the model that answers."""
    rows = [
        ("flow", Text(printable(titled(flow)))),
        ("model", Text(printable(model), "yellow")),
    ]
    if flow.inputs:
        rows.append(("inputs", Text(printable(preview(flow.inputs)))))
    return fact_rows([row for row in rows if row[1]], notices)


def titled(flow: FlowLine) -> str:
    """Returns the name of a flow, its kind, and its number of nodes or the node that runs alone."""
    if flow.node:
        return f"{flow.name} ({flow.kind}), the node {flow.node} alone"
    return f"{flow.name} ({flow.kind}, {counted(flow.nodes, 'node')})"


def given_file(file: JsonObject) -> str:
    """Describes a file of the question. In the trace of a flow, only the name of the file is known."""
    name = printable(file.get("filename"))
    if "size" in file:
        return f"{name} ({file_facts(file)})"
    return name


def heading(title: str) -> Rule:
    return Rule(Text(title, "bold cyan"), align="left", style="dim")
