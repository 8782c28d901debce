"""Shows a conversation in a terminal and reads the questions of a person or a program."""

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from devhost.errors import ParameterError
from devhost.node.outputs.run import Run, ToolCalls
from devhost.options import option, trace_option
from devhost.protocol.wire import JsonObject
from devhost.terminal import tables
from devhost.terminal.screen import STYLES, ViewOptions
from devhost.terminal.tables import printable
from devhost.terminal.turn_view import TurnView, sources_of, turn_log
from devhost.text import json_or
from devhost.trace.played import PlayedTurn
from devhost.words import counted


class ChatView(TurnView):
    """The view of a chat: streamed answers, the result of each turn, and the output of chat commands."""

    def __init__(self, console: Console, options: ViewOptions | None = None, *, show_log: bool = False) -> None:
        super().__init__(console, options)
        self._show_log = show_log or self._options.verbose

    def open_chat(self, facts: Table, example: str = "") -> None:
        """Prints the facts about a chat. `example` is a question that the script answers."""
        if example:
            facts.add_row("try", Text(printable(example)))
        self._console.print(facts)
        self._console.print(Text("Ctrl-C ends a turn, Ctrl-D the chat; /help lists the commands.", "dim"))

    def close_turn(self, turn: PlayedTurn, *, show_findings: bool = False, hints: Sequence[str] = ()) -> None:
        """Shows the result of a turn. `hints` are sentences such as what the person can type now."""
        self.finish_answer("" if turn.is_direct else turn.answer)
        run = turn.own
        stopped = run is not None and run.was_stopped
        if stopped:
            self.show_how_far()
        if run is not None:
            self._print(tables.files_list(run.outputs.files), soft_wrap=True)
        if self._show_log and not stopped:
            self._print(turn_log(turn, whole=self._options.verbose))
        if show_findings:
            self._print(tables.findings_list(turn.findings))
        if not stopped:
            self._say_why(turn)
        if run is None:
            self._sum_up_nodes(turn)
        else:
            self._sum_up_run(run)
        for hint in hints:
            self.note(hint)
        if run is not None:
            self._console.line()

    def _sum_up_nodes(self, turn: PlayedTurn) -> None:
        if turn.ending.level == "good":
            style = "dim"
        else:
            style = STYLES[turn.ending.level]
        how = f"{counted(len(turn.rows), 'node')}, {turn.ending.after(turn.seconds)}"
        self._console.print(Text(f"{how}{ToolCalls.sum_of(turn.runs).remark}", style))

    def _sum_up_run(self, run: Run) -> None:
        if run.ending.level == "limited" and not run.outputs.pending_calls:
            self._console.print(Text(str(run.ending), "yellow"))
        self._console.print(Text(f"{'stopped: ' if run.was_stopped else ''}{summary(run)}", "dim"))
        if run.error is None and run.outputs.pending_calls:
            self._console.print(Text("waiting for your answer:", "yellow"))
            self._console.print(tables.pending_table(run.outputs.pending_calls))

    def show_log(self, turn: PlayedTurn) -> None:
        self._print(turn_log(turn, whole=self._options.verbose) or Text("The last turn has no log.", "dim"))

    def show_sources(self, turn: PlayedTurn) -> None:
        self._print(tables.sources_table(sources_of(turn)) or Text("The last turn has no sources.", "dim"))

    def show_variables(self, variables: JsonObject) -> None:
        self._print(tables.variables_list(variables) or Text("There are no conversation variables.", "dim"))


def summary(run: Run) -> str:
    """Returns the cost of a run: its calls, tokens and seconds, without rounds, which only the strategy knows."""
    usage = run.usage
    tokens = None
    if isinstance(usage, dict):
        tokens = usage.get("total_tokens")
    calls = run.tool_calls
    parts = [
        counted(run.asked.get("llm", 0), "model call"),
        f"{counted(calls.count, 'tool call')}{f' ({calls.trouble})' if calls.trouble else ''}",
        counted(tokens, "token") if isinstance(tokens, int) else "",
        f"{run.elapsed_seconds:.1f} s",
    ]
    return " · ".join(part for part in parts if part)


# The questions of a conversation are typed at a prompt or piped in, one line or one JSON text each.
#
# Blank questions are skipped. A space before a slash is kept, because it turns a command into a question. At the
# prompt, Ctrl-C discards the line and Ctrl-D ends the chat. A text pasted over several lines is one question.

PROMPT = "you> "


@dataclass(frozen=True)
class TalkOptions:
    """The options of a conversation."""

    trace: Path | None = trace_option()
    json_lines: bool = option(
        "--json-lines",
        "Read each question as a line of JSON, a text, so that it can have several lines; for other programs. "
        "Ctrl-C then ends a turn, and has no effect between two turns.",
    )


def read_questions(*, json_lines: bool = False) -> Iterator[str]:
    """Yields the questions from standard input.

    With `json_lines`, a program sends each question as a JSON text, which may contain line breaks. Raises
    ParameterError if standard input is closed or a line is not a JSON text.
    """
    if sys.stdin is None:
        raise ParameterError("a chat reads its questions from standard input, which is closed: pipe them in, or type")
    if json_lines:
        return _piped(_json_text)
    if sys.stdin.isatty():
        return _typed()
    return _piped(lambda line, _number: line)


def _piped(read: Callable[[str, int], str]) -> Iterator[str]:
    """Yields the questions from a pipe and prints each one, so that the output reads like a conversation."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    for number, line in enumerate(sys.stdin, start=1):
        if line.strip() and (question := _question(read(line, number))):
            sys.stdout.write(f"{PROMPT}{printable(question)}\n")
            sys.stdout.flush()
            yield question


def _json_text(line: str, number: int) -> str:
    if isinstance(text := json_or(line, None), str):
        return text.encode(errors="replace").decode()  # JSON can escape characters that no message can contain
    raise ParameterError(f'--json-lines: line {number} of the input must be a text in JSON, such as "What now?"')


def _typed() -> Iterator[str]:
    read = typed_lines(PROMPT)
    while True:
        try:
            if question := _question(read()):
                yield question  # inside the try: a Ctrl-C just after the end of a turn must not end the chat
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
    """Returns a function that reads a typed line.

    The function raises KeyboardInterrupt after Ctrl-C and EOFError after Ctrl-D.
    """
    from prompt_toolkit import PromptSession  # noqa: PLC0415 - slow to import, and only typed input needs it
    from prompt_toolkit.output import create_output  # noqa: PLC0415

    session: PromptSession[str] = PromptSession(label, output=create_output(always_prefer_tty=True))
    # Bytes that are not UTF-8 arrive as lone surrogates, which no message can contain.
    return lambda: session.prompt().encode(errors="surrogateescape").decode(errors="replace")
