"""Shows the call of a tool in a terminal: each message as it arrives, then the result of the call."""

from collections.abc import Iterable, Mapping
from itertools import starmap

from rich.console import Group
from rich.rule import Rule
from rich.text import Text

from devhost.direct import ToolOutcome
from devhost.models.backend import ModelDescription
from devhost.protocol.wire import JsonObject
from devhost.terminal import tables
from devhost.terminal.screen import View
from devhost.terminal.tables import printable
from devhost.words import counted, in_a_line, preview


def _source_line(place: int, source: JsonObject) -> Text:
    """Returns the number and the title of a source and the beginning of its text, without fields for programs."""
    title = source.get("title") or source.get("document_name")
    passage = in_a_line(source.get("content") or "")
    words = f"           [{source.get('position') or place}] {title}"
    if passage:
        words = f"{words}: {passage}"
    return Text(printable(words), overflow="ellipsis", no_wrap=True)


class ToolView(View):
    """The view of one tool call."""

    def open(
        self, tool: str, parameters: Mapping[str, object], model: ModelDescription, notices: Iterable[str] = ()
    ) -> None:
        given = (("tool", tool), ("sent", preview(parameters)), ("model", model.notice))
        self._console.print(tables.fact_rows([(name, Text(printable(fact))) for name, fact in given], notices))
        self._console.print(tables.heading("messages"))

    def show(self, message: JsonObject, seconds: float) -> None:
        kind = printable(message.get("type"))
        meta = message.get("meta")
        line = Text.assemble((f"{seconds:7.3f} s  ", "cyan"), (f"{kind}  ", "bold"), overflow="fold")
        match message.get("message"):
            case {"text": str(said)}:
                line.append(printable(said))
            case {"variable_name": name, "variable_value": value}:
                line.append(printable(f"{name} = {preview(value)}"))
            case {"retriever_resources": list(sources)}:
                self._console.print(line.append(counted(len(sources), "source")))
                self._console.print(Group(*starmap(_source_line, enumerate(sources, start=1))))
                return
            case {"json_object": said} | said:
                line.append(printable(preview(said)))
        if meta:
            line.append(f"  meta {printable(preview(meta))}")
        self._console.print(line)

    def close(self, outcome: ToolOutcome) -> None:
        if not outcome.messages and outcome.error is None:
            self._console.print(Text("(no message)", "dim"))
        self._section("files", tables.files_list(outcome.files), soft_wrap=True)
        self._section("variables", tables.variables_list(outcome.variables))
        for title, found in tables.sections_of_findings(outcome.findings):
            self._section(title, found)
        self._console.print(Rule(style="dim"))
        seconds = outcome.elapsed_seconds
        ended = Text(f"finished in {seconds:.2f} s", "green")
        if outcome.told_an_error:
            ended.append("; the server says that its result is an error, which Dify ignores", "yellow")
        self._end(outcome.error, seconds, ended)
