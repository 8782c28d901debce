"""The view of a conversation in a terminal, and the questions that a person types."""

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from devhost.conversation import was_stopped
from devhost.errors import ParameterError
from devhost.models.backend import ModelDescription
from devhost.node.outputs.run import Run
from devhost.options import option, trace_option
from devhost.scenario import Scenario
from devhost.terminal import tables
from devhost.terminal.screen import ViewOptions
from devhost.terminal.tables import printable
from devhost.terminal.turn_view import TurnView
from devhost.text import json_or
from devhost.words import counted


def scenario_facts(scenario: Scenario, model: ModelDescription) -> Table:
    names = (scenario.name, scenario.written.description, scenario.strategy.identity.name)
    return tables.facts_table(*names, model, scenario.notices)


class ChatView(TurnView):
    def __init__(self, console: Console, options: ViewOptions | None = None, *, show_log: bool) -> None:
        super().__init__(console, options)
        self._show_log = show_log or self._options.verbose

    def open_chat(self, scenario: Scenario, model: ModelDescription) -> None:
        facts = scenario_facts(scenario, model)
        if model.scripted and scenario.script is not None:
            facts.add_row("try", Text(scenario.script.query))
        self._console.print(facts)
        self._console.print(Text("Ctrl-C ends an answer, Ctrl-D the chat; /help lists the commands.", "dim"))

    def close_turn(self, run: Run, *, show_findings: bool = False, hints: Sequence[str] = ()) -> None:
        """`hints`: sentences for the person, such as what can be typed now."""
        self.finish_answer()
        stopped = was_stopped(run)
        if stopped:
            self.show_how_far()
        self._print(tables.files_list(run.outputs.files), soft_wrap=True)
        if self._show_log and not stopped:
            self._print(self._log_of(run))
        if show_findings:
            self._print(tables.findings_list(run.findings))
        if run.error is not None and not stopped:
            self._console.print(tables.failure_text(run.error, traceback=self._options.traceback))
        if run.ending.level == "limited" and not run.outputs.pending_calls:
            self._console.print(Text(str(run.ending), "yellow"))
        self._console.print(Text(f"{'stopped: ' if stopped else ''}{summary(run)}", "dim"))
        if run.error is None and run.outputs.pending_calls:
            self._console.print(Text("waiting for your answer:", "yellow"))
            self._console.print(tables.pending_table(run.outputs.pending_calls))
        for hint in hints:
            self.note(hint)
        self._console.line()

    def _log_of(self, run: Run) -> RenderableType | None:
        return tables.log_tree(run.outputs.logs, run.calls, whole=self._options.verbose)

    def show_log(self, run: Run) -> None:
        self._print(self._log_of(run) or Text("The last run has no log.", "dim"))

    def show_sources(self, run: Run) -> None:
        sources = tables.sources_table(run.outputs.variables.get("sources"))
        self._print(sources or Text("The last run has no sources.", "dim"))


def summary(run: Run) -> str:
    """What the run cost; how many rounds it had, only its strategy knows."""
    usage = run.usage
    tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
    calls = run.tool_calls
    parts = [
        counted(run.asked.get("llm", 0), "model call"),
        f"{counted(calls.count, 'tool call')}{f' ({calls.trouble})' if calls.trouble else ''}",
        counted(tokens, "token") if isinstance(tokens, int) else "",
        f"{run.elapsed_seconds:.1f} s",
    ]
    return " · ".join(part for part in parts if part)


# The questions of a conversation: typed at a prompt, or from a pipe a line each, or a JSON text each.
#
# Blank ones are skipped. A space before a slash stays, because it makes a question of what would be a command. At the
# prompt Ctrl-C discards the line and Ctrl-D ends the chat; a text pasted over several lines is one question.

PROMPT = "you> "


@dataclass(frozen=True)
class TalkOptions:
    trace: Path | None = trace_option()
    json_lines: bool = option(
        "--json-lines",
        "Read each question as a line of JSON, a text, so that it can have several lines; for other programs. "
        "Ctrl-C then ends a turn, and has no effect between two.",
    )


def read_questions(*, json_lines: bool = False) -> Iterator[str]:
    """`json_lines`: from a program, each line a text in JSON, which may have several lines.

    ParameterError for a standard input that is closed, and for a line that is not such a text.
    """
    if sys.stdin is None:
        raise ParameterError("a chat reads its questions from standard input, which is closed: pipe them in, or type")
    if json_lines:
        return _piped(_json_text)
    if sys.stdin.isatty():
        return _typed()
    return _piped(lambda line, _number: line)


def _piped(read: Callable[[str, int], str]) -> Iterator[str]:
    """Questions are printed as they are read, so that the output reads as a conversation."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    for number, line in enumerate(sys.stdin, start=1):
        if line.strip() and (question := _question(read(line, number))):
            sys.stdout.write(f"{PROMPT}{printable(question)}\n")
            sys.stdout.flush()
            yield question


def _json_text(line: str, number: int) -> str:
    if isinstance(text := json_or(line, None), str):
        return text.encode(errors="replace").decode()  # JSON can escape what no message can contain
    raise ParameterError(f'--json-lines: line {number} of the input must be a text in JSON, such as "What now?"')


def _typed() -> Iterator[str]:
    read = typed_lines(PROMPT)
    while True:
        try:
            if question := _question(read()):
                yield question  # inside the try: a Ctrl-C that comes just too late for a turn is one at the prompt
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _question(typed: str) -> str:
    question = typed.strip()
    if question.startswith("/") and typed[0].isspace():
        return f" {question}"
    return question


def typed_lines(label: str) -> Callable[[], str]:
    """Reads a line of what a person types; KeyboardInterrupt after Ctrl-C, EOFError after Ctrl-D."""
    from prompt_toolkit import PromptSession  # noqa: PLC0415 - slow to import, and only what is typed needs it
    from prompt_toolkit.output import create_output  # noqa: PLC0415

    session: PromptSession[str] = PromptSession(label, output=create_output(always_prefer_tty=True))
    # Bytes that are not UTF-8 arrive as lone surrogates, which no message can contain.
    return lambda: session.prompt().encode(errors="surrogateescape").decode(errors="replace")
