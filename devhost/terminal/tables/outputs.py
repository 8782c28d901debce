"""The outputs of a run: sources, files, variables, calls that wait, usage, findings."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from devhost.node.outputs.outputs import Finding, IconLookups
from devhost.protocol.wire import JsonObject
from devhost.terminal.tables.text import clipped, on_a_line, preview, printable
from devhost.text.counted import counted
from devhost.text.price import price_text

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
    match usage:
        case {
            "total_tokens": int(total),
            "prompt_tokens": int(prompt),
            "completion_tokens": int(completion),
            "total_price": str() | int() | float() as price,
            "currency": str(currency),
            "latency": int() | float() as latency,
        }:
            return Text.assemble(
                (counted(total, "token"), "bold"),
                f" = {prompt:,} prompt + {completion:,} completion",
                f" · {printable(price_text(price))} {printable(currency)} · {latency:.3f} s in the model",
            )
        case _:
            return Text(printable(usage if isinstance(usage, str) else preview(usage)))


def lookups(found: IconLookups) -> str:
    return f"{found.list_plugins:,} × list_plugins and {found.list_builtin_tools:,} × list_builtin_tools"


def findings_list(findings: Sequence[Finding]) -> RenderableType:
    return Group(*(Text.assemble((finding.rule, "yellow"), f": {printable(finding.sentence)}") for finding in findings))
