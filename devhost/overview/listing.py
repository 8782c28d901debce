"""Strategies, tools and their parameters, a line each.

In: declarations. Out: texts, in which a name comes first and what it is for comes last.
"""

from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from devhost.direct.asked import Found
from devhost.plugin.guesses import range_text
from devhost.plugin.keys.parameters import Parameter
from devhost.terminal.tables.text import preview, printable
from devhost.tools.entity import refused_parameters

INDENT = "    "


def tool_lines(tools: Iterable[Found]) -> Iterator[Text]:
    for found in tools:
        files = refused_parameters(found.tool)
        note = f"  (needs a file, so that no agent can have it: {', '.join(files)})" if files else ""
        name = f"{found.provider.identity.name}/{found.tool.identity.name}"
        yield line(name, found.tool.description.human.en_US, note)
        yield from parameter_lines(found.tool.parameters)


def parameter_lines(parameters: Sequence[Parameter]) -> Iterator[Text]:
    width = max((len(parameter.name) for parameter in parameters), default=0)
    for parameter in parameters:
        about = parameter.human_description or parameter.label
        facts = ", ".join(_facts(parameter))
        yield Text.assemble(
            INDENT,
            printable(parameter.name).ljust(width),
            (f"  {printable(facts)}", "cyan"),
            (f"  {_plain(about.en_US)}", "dim"),
        )


def line(name: str, description: str, note: str = "") -> Text:
    return Text.assemble(
        (printable(name), "bold"),
        f"  {_plain(description)}",
        (printable(note), "yellow"),
    )


def _facts(parameter: Parameter) -> Iterator[str]:
    yield f"{parameter.type}[]" if parameter.multiple else parameter.type
    if parameter.required:
        yield "required"
    if parameter.form == "form":
        yield "set in the panel"
    if parameter.options:
        yield f"one of {' | '.join(option.value for option in parameter.options)}"
    if limits := range_text(parameter):
        yield limits
    if parameter.default not in (None, ""):
        yield f"default {preview(parameter.default)}"


def _plain(text: str) -> str:
    return " ".join(printable(text).split())
