"""Shows the trace of a flow in the terminal as the flow was shown: at once, or with its own pauses."""

import threading
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from devhost.flow.events import FlowEnded, NodeEnded
from devhost.flow.traces.traced import traced_turns
from devhost.flow.view.report import findings_of
from devhost.flow.view.view import FlowView
from devhost.terminal.view_options import ViewOptions
from devhost.trace.reader import Trace

LOST = FlowEnded("failed", {}, "the trace ends before the flow does: it was killed, or it is still going on")


def replay_flow(
    trace: Trace, console: Console, *, pause: Callable[[float], None], speed: float | None, options: ViewOptions
) -> None:
    """`speed` 2 is twice as fast as it was; None is at once."""
    view = FlowView(console, options)
    turns = traced_turns(trace)
    for number, turn in enumerate(turns):
        if number == 0:
            view.open_with(turn.facts, trace.notices)
            view.begin_answer()
        else:
            view.go_on(turn.facts.query)
        last = turn.began
        end = LOST
        for at, event in turn.events:
            if speed is not None and at > last:
                pause(min((at - last) / speed, threading.TIMEOUT_MAX))
                last = at
            view.show(event, at)
            end = event if isinstance(event, FlowEnded) else end
        nodes = [event for _, event in turn.events if isinstance(event, NodeEnded)]
        view.close(end, turn.finished - turn.began, findings_of(nodes))
    if not turns:
        console.print(Text("The trace ends before the flow began.", "yellow"))
    if trace.cut_off:
        console.print(Text("The last line of the trace is cut off: the flow was killed.", "yellow"))
