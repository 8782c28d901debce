"""The views of a run and of a tool's call in a terminal: what is asked, what comes while it runs, its outputs."""

import time
from collections.abc import Iterable, Mapping

from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from devhost.direct import ToolOutcome
from devhost.models.backend import ModelDescription
from devhost.node.outputs.outputs import OPEN, AgentLog
from devhost.node.outputs.run import Run
from devhost.node.texts import Span, ThoughtSpans
from devhost.protocol.wire import JsonObject
from devhost.terminal.screen import STYLES, View
from devhost.terminal.tables import (
    facts_table,
    files_list,
    findings_list,
    given_file,
    heading,
    json_list,
    log_tree,
    pending_table,
    preview,
    printable,
    sources_table,
    usage_line,
    variables_list,
)
from devhost.words import counted

# A run: model and question, the answer while it streams, and at the end its outputs.


class RunView(View):
    def _begin(self) -> None:
        super()._begin()
        self._spans = ThoughtSpans(keep_tags=True)
        self._log = AgentLog()
        self._logged_at: dict[str, float] = {}
        """By id, when an entry came first."""

    def open(  # noqa: PLR0913 - the facts of a run
        self,
        example: str,
        description: str,
        strategy: str,
        model: ModelDescription,
        question: str,
        *,
        notices: Iterable[str] = (),
        files: Iterable[JsonObject] = (),
    ) -> None:
        """`files` go with the question."""
        facts = facts_table(example, description, strategy, model, notices)
        facts.add_row("question", Text(printable(question)))
        for file in files:
            facts.add_row("file", Text(given_file(file)))
        self._console.print(facts)

    def show(self, message: JsonObject) -> None:
        match message:
            case {"type": "text", "message": {"text": text}}:
                self._write(list(self._spans.feed(text)))
            case {"type": "log", "message": {"id": str(id_), "label": str(label), "status": status} as body}:
                self._logged_at.setdefault(id_, time.monotonic())
                self._log.add({"data": {}, **body})
                if status == OPEN:
                    self.screen.show_status(printable(label))

    def finish_answer(self) -> None:
        self._write(list(self._spans.finish()))
        self._end_answer()

    def close(self, run: Run, model_note: str = "") -> None:
        self.finish_answer()
        outputs = run.outputs
        variables = dict(outputs.variables)
        sources = variables.pop("sources", None)
        self._section("log", log_tree(outputs.logs, run.calls, whole=self._options.verbose) if outputs.logs else None)
        self._section("sources", sources_table(sources) if isinstance(sources, list) and sources else None)
        self._section("files", files_list(outputs.files) if outputs.files else None, soft_wrap=True)
        if outputs.pending_calls:
            del variables["pending_calls"]
            self._section("calls that wait for an answer", pending_table(outputs.pending_calls))
        self._section("variables", variables_list(variables) if variables else None)
        values = outputs.json_of_strategy()
        self._section("json", json_list(values) if values else None)
        self._section("usage", usage_line(run.usage))
        self._section("violations of Dify's rules", findings_list(run.findings) if run.findings else None)
        self._close_with_result(run, model_note)

    def _close_with_result(self, run: Run, model_note: str) -> None:
        self._console.print(Rule(style="dim"))
        if dropped := run.outputs.dropped_retriever_resources:
            self.note(f"In Dify: all versions today drop retriever resources; this run sent {dropped:,}.")
        if model_note:
            self.note(model_note)
        trouble = run.tool_calls.trouble
        of_calls = f"; of {counted(run.tool_calls.count, 'tool call')}, {trouble}" if trouble else ""
        how = f"{run.ending.after(run.elapsed_seconds)}{of_calls}"
        self._end(run.error, run.elapsed_seconds, Text(how, STYLES[run.ending.level]))

    def show_how_far(self) -> None:
        """After Ctrl-C: the log until then, with how long its open entries have been open."""
        self._show_how_far("log until Ctrl-C", self._log_so_far)

    def _log_so_far(self) -> RenderableType | None:
        roots, now = self._log.roots(), time.monotonic()
        open_for = {id_: now - at for id_, at in self._logged_at.items()}
        return log_tree(roots, whole=self._options.verbose, open_for=open_for) if roots else None

    def _write(self, spans: list[Span]) -> None:
        for thinking, text in spans:
            self._say(text, "dim italic" if thinking else None)


# One tool called directly: each message as it comes, then what came of the call.


class ToolView(View):
    def _begin(self) -> None:
        super()._begin()
        self._called_at: float | None = None
        self._shown = 0

    def open(
        self, tool: str, parameters: Mapping[str, object], model: ModelDescription, notices: Iterable[str] = ()
    ) -> None:
        facts = Table.grid(padding=(0, 2))
        facts.add_column(style="bold")
        facts.add_row("tool", Text(printable(tool)))
        facts.add_row("sent", Text(printable(preview(parameters))))
        facts.add_row("model", Text(model.notice))
        for notice in notices:
            facts.add_row("notice", Text(printable(notice), "yellow"))
        self._console.print(facts)
        self._console.print(heading("messages"))

    def call(self) -> None:
        """The plugin serves, and the tool is called now."""
        self._called_at = time.monotonic()

    def show_how_far(self) -> None:
        """After Ctrl-C: whether the plugin was still starting, or for how long the tool has been called."""
        self.screen.end_line()
        self.screen.say_what_starts()
        if self._called_at is not None:
            seconds = time.monotonic() - self._called_at
            said = counted(self._shown, "message")
            self._console.print(
                Text(f"… the tool had not finished after {seconds:.1f} s; it had sent {said}", "yellow")
            )

    def show(self, message: JsonObject, seconds: float) -> None:
        self._shown += 1
        kind = str(message.get("type"))
        line = Text.assemble((f"{seconds:7.3f} s  ", "cyan"), (f"{printable(kind)}  ", "bold"), overflow="fold")
        line.append(printable(_content(kind, message)))
        self._console.print(line)

    def close(self, outcome: ToolOutcome) -> None:
        if not outcome.messages and outcome.error is None:
            self._console.print(Text("(no message)", "dim"))
        self._section("files", files_list(outcome.files) if outcome.files else None, soft_wrap=True)
        self._section("variables", variables_list(outcome.variables) if outcome.variables else None)
        self._section("violations of Dify's rules", findings_list(outcome.findings) if outcome.findings else None)
        self._console.print(Rule(style="dim"))
        seconds = outcome.elapsed_seconds
        self._end(outcome.error, seconds, Text(f"finished in {seconds:.2f} s", "green"))


def _content(kind: str, message: JsonObject) -> str:
    body = message.get("message")
    meta = message.get("meta")
    shown = _body(kind, body if isinstance(body, dict) else {"message": body})
    return f"{shown}  meta {preview(meta)}" if meta else shown


def _body(kind: str, body: JsonObject) -> str:
    match kind, body:
        case "log", {"label": label, "status": status}:
            rest = {key: value for key, value in body.items() if key not in ("label", "status", "id") and value}
            return f"{status}: {label}" + (f"  {preview(rest)}" if rest else "")
        case "variable", {"variable_name": name, "variable_value": value}:
            streamed = " (a part)" if body.get("stream") else ""
            return f"{name}{streamed} = {preview(value)}"
        case _, {"text": text}:
            return str(text)
        case _, {"json_object": value}:
            return preview(value)
        case _:
            return preview(body)
