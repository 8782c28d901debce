"""What is known before a run: its example, strategy, model and files; and the heading of a part."""

from collections.abc import Iterable

from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from devhost.models.backend import ModelDescription
from devhost.protocol.wire import JsonObject
from devhost.terminal.tables.outputs import file_facts
from devhost.terminal.tables.text import printable


def facts_table(
    example: str, description: str, strategy: str, model: ModelDescription, notices: Iterable[str] = ()
) -> Table:
    """The example, the strategy and the model of a run, and what to know before it."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    for name, fact in (("example", example), ("script", description)):
        if fact:
            facts.add_row(name, Text(fact))
    facts.add_row("strategy", Text(strategy))
    facts.add_row("model", Text(model.name))
    facts.add_row("", Text(model.notice, "yellow" if model.scripted else ""))
    for notice in notices:
        facts.add_row("notice", Text(printable(notice), "yellow"))
    return facts


def given_file(file: JsonObject) -> str:
    return f"{printable(file.get('filename'))} ({file_facts(file)})"


def heading(title: str) -> Rule:
    return Rule(Text(title, "bold cyan"), align="left", style="dim")
