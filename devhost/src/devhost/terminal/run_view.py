"""The views of a run and of a tool's call in a terminal: what is asked, what comes while it runs, its outputs."""

from collections.abc import Iterable, Mapping
from itertools import starmap

from rich.console import Group
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from devhost.direct import ToolOutcome
from devhost.models.backend import ModelDescription
from devhost.node.outputs.outputs import OPEN, AgentLog
from devhost.node.outputs.run import Run
from devhost.node.texts import Span, ThoughtSpans
from devhost.protocol.wire import JsonObject
from devhost.terminal import tables
from devhost.terminal.screen import STYLES, View
from devhost.terminal.tables import printable
from devhost.words import counted, in_a_line, preview

# A run: model and question, the answer while it streams, and at the end its outputs.


class RunView(View):
    def _begin(self) -> None:
        super()._begin()
        self._spans = ThoughtSpans(keep_tags=True)
        self._log = AgentLog()

    def open(self, facts: Table, question: str, files: Iterable[JsonObject] = ()) -> None:
        """`facts`: a `facts_table`; `files` go with the question."""
        facts.add_row("question", Text(printable(question)))
        for file in files:
            facts.add_row("file", Text(tables.given_file(file)))
        self._console.print(facts)

    def show(self, message: JsonObject) -> None:
        match message:
            case {"type": "text", "message": {"text": text}}:
                self._write(list(self._spans.feed(text)))
            case {"type": "log", "message": {"id": str(), "label": str(label), "status": status} as body}:
                self._log.add({"data": {}, **body})
                if status == OPEN:
                    self.screen.show_status(printable(label))

    def finish_answer(self) -> None:
        self._write(list(self._spans.finish()))
        self._end_answer()

    def close(self, run: Run, model_note: str = "") -> None:
        self.finish_answer()
        outputs = run.outputs
        hidden = {"sources", "pending_calls" if outputs.pending_calls else ""}
        self._section("log", tables.log_tree(outputs.logs, run.calls, whole=self._options.verbose))
        self._section("sources", tables.sources_table(outputs.variables.get("sources")))
        self._section("files", tables.files_list(outputs.files), soft_wrap=True)
        self._section("calls that wait for an answer", tables.pending_table(outputs.pending_calls))
        self._section(
            "variables", tables.variables_list({k: v for k, v in outputs.variables.items() if k not in hidden})
        )
        self._section("json", tables.json_list(outputs.json_of_strategy()))
        self._section("usage", tables.usage_line(run.usage))
        for title, found in tables.sections_of_findings(run.findings):
            self._section(title, found)
        self._console.print(Rule(style="dim"))
        if dropped := outputs.dropped_retriever_resources:
            self.note(f"Dify's Agent node drops retriever resources (seen up to 1.17.0); this run sent {dropped:,}.")
        if model_note:
            self.note(model_note)
        how = (run.ending.after(run.elapsed_seconds), STYLES[run.ending.level])
        self._end(run.error, run.elapsed_seconds, Text.assemble(how, (run.tool_calls.remark, "yellow")))

    def show_how_far(self) -> None:
        super().show_how_far()
        self._section("log until Ctrl-C", tables.log_tree(self._log.roots(), whole=self._options.verbose))

    def _write(self, spans: list[Span]) -> None:
        for thinking, text in spans:
            self._say(text, "dim italic" if thinking else None)


# One tool called directly: each message as it comes, then what came of the call.


def _source_line(place: int, source: JsonObject) -> Text:
    """Its number and title, and how its passage begins; the rest is for programs."""
    title = source.get("title") or source.get("document_name")
    passage = in_a_line(source.get("content") or "")
    words = f"           [{source.get('position') or place}] {title}{f': {passage}' if passage else ''}"
    return Text(printable(words), overflow="ellipsis", no_wrap=True)


class ToolView(View):
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
        self._console.print(line.append(f"  meta {printable(preview(meta))}" if meta else ""))

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
            ended.append("; the server says that its result is an error, which Dify does not look at", "yellow")
        self._end(outcome.error, seconds, ended)
