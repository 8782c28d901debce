"""Shows a trace in the terminal as a run is shown."""

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from devhost.errors import NodeFailedError
from devhost.models.backend import ModelDescription
from devhost.node.messages import Message, read_message
from devhost.node.parameters import files_among
from devhost.node.texts import NodeText
from devhost.terminal.run_view import RunView
from devhost.terminal.screen import ViewOptions
from devhost.terminal.tables import facts_table
from devhost.trace.lines import PrintedLine, Trace
from devhost.trace.runs import Arrival, TracedRun, run_of, traced_runs


def replay_trace(trace: Trace, console: Console, options: ViewOptions | None = None) -> None:
    header, told = trace.header, trace.header.model
    model = ModelDescription(told.provider, told.name, told.notice, told.scripted)
    facts = (header.example, header.description, header.strategy, model)
    view, runs = RunView(console, options), traced_runs(trace)
    for number, traced in enumerate(runs):
        if number == 0:
            view.open(*facts, traced.question, notices=trace.notices, files=files_among(traced.parameters))
            view.begin_answer()
        else:
            view.go_on(traced.question, files_among(traced.parameters))
        _stream(view, traced)
        view.close(run_of(traced, header.strategy), traced.remark)
    if not runs:
        console.print(facts_table(*facts, trace.notices))
        console.print(Text("The trace ends before the strategy was asked.", "yellow"))
    if trace.cut_off:
        console.print(Text("The last line of the trace is cut off: the run was killed.", "yellow"))


def _stream(view: RunView, traced: TracedRun) -> None:
    text = NodeText()
    lines: list[Arrival | PrintedLine] = [*traced.streamed, *traced.printed]
    for coming in sorted(lines, key=lambda line: line.at):
        if isinstance(coming, PrintedLine):
            view.screen.printed(coming.plugin, coming.text)
            continue
        with contextlib.suppress(NodeFailedError):  # what the host refused was never shown
            _show(view, text.take(read_message(coming.message)))
    if traced.end is not None and traced.end.outcome.error is None:
        _show(view, text.finish())


def _show(view: RunView, messages: Iterator[Message]) -> None:
    for message in messages:
        view.show(message.on_the_wire())
