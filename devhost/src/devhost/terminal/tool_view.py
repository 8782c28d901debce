"""The view of one tool called directly: each message as it comes, then what came of the call.

In: a tool's name and parameters, messages, an outcome. Out: text on a rich console.
"""

import time
from collections.abc import Iterable, Mapping

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from devhost.direct import ToolOutcome
from devhost.models.backend import ModelDescription
from devhost.protocol.wire import JsonObject
from devhost.terminal.run_view import Screen
from devhost.terminal.tables import failure_text, files_list, findings_list, preview, printable, variables_list
from devhost.words import counted


class ToolView:
    def __init__(self, console: Console, *, traceback: bool = False) -> None:
        self._console = console
        self._traceback = traceback
        self.screen = Screen(console)
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
        self._console.print(_heading("messages"))

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
        if not outcome.messages:
            self._console.print(Text("(no message)", "dim"))
        self._section("files", files_list(outcome.files) if outcome.files else None, soft_wrap=True)
        self._section("variables", variables_list(outcome.variables) if outcome.variables else None)
        self._section("violations of Dify's rules", findings_list(outcome.findings) if outcome.findings else None)
        self._console.print(Rule(style="dim"))
        if outcome.error is None:
            self._console.print(Text(f"finished in {outcome.elapsed_seconds:.2f} s", "green"))
            return
        self._console.print(Text(f"failed after {outcome.elapsed_seconds:.2f} s", "red bold"))
        self._console.print(failure_text(outcome.error, traceback=self._traceback))

    def _section(self, title: str, content: RenderableType | None, *, soft_wrap: bool = False) -> None:
        if content is not None:
            self._console.line()
            self._console.print(_heading(title))
            self._console.print(content, soft_wrap=soft_wrap)


def _heading(title: str) -> Rule:
    return Rule(Text(title, "bold cyan"), align="left", style="dim")


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
