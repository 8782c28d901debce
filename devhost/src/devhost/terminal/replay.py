"""Shows a trace in the terminal as the run was shown: at once, or with its own pauses.

In: a `Trace`. Out: what `RunView` or, for a conversation, `ChatView` prints.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from devhost.errors import NodeFailedError
from devhost.models.backend import ModelDescription
from devhost.node.messages import Message, read_message
from devhost.node.parameters import files_among
from devhost.node.texts import NodeText
from devhost.terminal.chat_view import PROMPT, ChatView
from devhost.terminal.run_view import RunView
from devhost.terminal.screen import ViewOptions
from devhost.terminal.tables import facts_table, printable
from devhost.trace.lines import PrintedLine, Trace
from devhost.trace.runs import Arrival, TracedRun, run_of, traced_runs

type Pause = Callable[[float], None]


def replay_trace(
    trace: Trace, console: Console, *, pause: Pause, speed: float | None, options: ViewOptions | None = None
) -> None:
    """`speed` 2 is twice as fast as it was; None is at once."""
    header = trace.header
    runs = traced_runs(trace)
    if header.command == "chat":
        _replay_chat(trace, runs, ChatView(console, options, show_log=False), console, speed=speed, pause=pause)
    else:
        view = RunView(console, options)
        for number, traced in enumerate(runs):
            if number == 0:
                facts = (header.example, header.description, header.strategy, model_of(trace), traced.question)
                view.open(*facts, notices=trace.notices, files=files_among(traced.parameters))
                view.begin_answer()
            else:
                view.go_on(traced.question, files_among(traced.parameters))
            _stream(view, traced, speed, pause)
            view.close(run_of(traced, header.strategy), traced.remark)
    if not runs:
        if header.command != "chat":
            console.print(_facts(trace))
        console.print(Text("The trace ends before the strategy was asked.", "yellow"))
    if trace.cut_off:
        console.print(Text("The last line of the trace is cut off: the run was killed.", "yellow"))


def model_of(trace: Trace) -> ModelDescription:
    model = trace.header.model
    return ModelDescription(model.provider, model.name, model.notice, model.scripted)


def _facts(trace: Trace) -> Table:
    header = trace.header
    return facts_table(header.example, header.description, header.strategy, model_of(trace), trace.notices)


def _replay_chat(  # noqa: PLR0913 - what a replay is made of
    trace: Trace, runs: list[TracedRun], chat: ChatView, console: Console, *, speed: float | None, pause: Pause
) -> None:
    header = trace.header
    console.print(_facts(trace))
    for traced in runs:
        console.print(Text(f"{PROMPT}{printable(traced.question)}"))
        with chat.turn(files_among(traced.parameters)) as view:
            _stream(view, traced, speed, pause)
            chat.close_turn(view, run_of(traced, header.strategy), show_findings=True)


def _stream(view: RunView, traced: TracedRun, speed: float | None, pause: Pause) -> None:
    at = traced.began
    text = NodeText()
    lines: list[Arrival | PrintedLine] = [*traced.streamed, *traced.printed]
    for coming in sorted(lines, key=lambda line: line.at):
        if speed is not None and coming.at > at:
            pause(min((coming.at - at) / speed, threading.TIMEOUT_MAX))
            at = coming.at
        if isinstance(coming, PrintedLine):
            view.screen.printed(coming.plugin, coming.text, exact=coming.exact)
            continue
        with contextlib.suppress(NodeFailedError):  # what the host refused was never shown
            _show(view, text.take(read_message(coming.message)))
    if traced.end is not None and traced.end.outcome.error is None:
        _show(view, text.finish())


def _show(view: RunView, messages: Iterator[Message]) -> None:
    for message in messages:
        view.show(message.on_the_wire())
