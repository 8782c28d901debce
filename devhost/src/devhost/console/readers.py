"""Runs as they go on: each trace is read once for all pages that look at it, and its rows are rendered once."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from devhost.flow.pages import ShownTurn, shown_turns
from devhost.node.outputs.outputs import OPEN
from devhost.page.calls import given_to, prompt_of, results_of, said_by, traceback_of
from devhost.page.contents import Passage, every, pretty
from devhost.page.section import ShownRun, shown_run
from devhost.trace.lines import Growing, Trace, is_written, read_trace
from devhost.trace.runs import Call, traced_runs, written_calls
from devhost.trace.timeline import Span

KEPT = 8
"""So many traces stay parsed; one of a hundred rounds takes tens of megabytes."""

type Render = Callable[[Span, ShownRun], str]


@dataclass(frozen=True)
class Turn:
    """What a person sees of a question and what came of it, by a strategy or by a flow."""

    shown: ShownRun | ShownTurn
    question: str
    answer: Sequence[Passage]
    runs: Sequence[ShownRun]
    """Of strategies: the turn itself, or those of the flow's agents."""
    ended: bool
    goes_on: bool

    @classmethod
    def of(cls, shown: ShownRun | ShownTurn) -> Self:
        if isinstance(shown, ShownRun):
            ended = shown.traced.end is not None
            return cls(shown, shown.traced.question, shown.answer, (shown,), ended, shown.goes_on)
        runs = [run for node in shown.nodes for run in node.runs]
        return cls(shown, shown.traced.facts.query, shown.answer, runs, shown.traced.ended is not None, shown.goes_on)

    @property
    def open(self) -> Iterator[tuple[str, float]]:
        """What has begun and not ended: its name, and when it began in seconds since the trace did."""
        if isinstance(self.shown, ShownTurn):
            yield from ((node.row.label, node.row.began) for node in self.shown.nodes if node.row.ended is None)
        yield from ((span.label, span.began) for run in self.runs for span in run.rows if span.status == OPEN)


@dataclass(frozen=True)
class Seen:
    """A trace as far as it was written."""

    trace: Trace | None
    """None before its first line."""
    turns: Sequence[Turn] = ()

    @property
    def runs(self) -> list[ShownRun]:
        return [run for turn in self.turns for run in turn.runs]

    @property
    def awaited(self) -> tuple[str, float] | None:
        """What the last turn waits for, with a name if it has one, and since when in seconds since 1970."""
        if self.trace is None or not self.turns or self.turns[-1].ended:
            return None
        name, began = max(self.turns[-1].open, key=lambda each: each[1], default=("", self.turns[-1].shown.axis.began))
        return name, self.trace.header.started.timestamp() + began

    def row(self, anchor: str) -> tuple[ShownRun, Span] | None:
        rows = ((shown, span) for shown in self.runs for span in shown.rows)
        return next(((shown, span) for shown, span in rows if shown.anchor(span) == anchor), None)


class RunReader:
    def __init__(self, file: Path) -> None:
        self.file = file
        self._growing = Growing(file, read_trace)
        self._reading = threading.Lock()
        self._seen = Seen(None)
        self._written = False
        self._ended: dict[tuple[str, bool, int], str] = {}
        """The rows of groups that have ended: of a long run, a change costs what its last group costs."""

    def read(self) -> Seen:
        """The same value as before if nothing was added; a TraceError comes each time again."""
        with self._reading:
            written = is_written(self.file)  # asked first: nothing is added after a no
            trace = self._growing.read()
            if trace is not self._seen.trace or written != self._written:
                if trace is None or self._seen.trace is None or trace.header != self._seen.trace.header:
                    self._ended = {}
                self._seen = Seen(trace, () if trace is None else _turns(trace, is_written=written))
                self._written = written
            return self._seen

    def once(self, turn: Turn, render: Callable[[], str]) -> str:
        """The HTML of a turn, rendered once when it has ended."""
        key = (str(turn.shown.number), turn.ended, 0)
        html = self._ended.get(key) or render()
        if turn.ended:
            self._ended[key] = html
        return html

    def rows(self, shown: ShownRun, render: Render) -> Mapping[str, str]:
        """HTML by the anchor of each row that stands in no other."""
        found, ended = {}, self._ended
        for span in shown.spans:
            inside = list(every([span]))
            anchor = shown.anchor(span)
            key = (anchor, shown.is_open(span), len(inside))  # what a plugin printed may still come
            found[anchor] = html = ended.get(key) or render(span, shown)
            if all(each.status != OPEN for each in inside):
                ended[key] = html
        return found


def _turns(trace: Trace, *, is_written: bool) -> Sequence[Turn]:
    runs = traced_runs(trace)
    if trace.header.command == "flow":
        return list(map(Turn.of, shown_turns(trace, is_written=is_written)))
    return [
        Turn.of(shown_run(number, each, trace, is_written=is_written and each is runs[-1]))
        for number, each in enumerate(runs, start=1)
    ]


class Kept[K, V]:
    """The values that were asked for last, made when they are asked for first."""

    def __init__(self, make: Callable[[K], V], most: int = KEPT) -> None:
        self._make = make
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()
        self._choosing = threading.Lock()

    def of(self, key: K) -> V:
        with self._choosing:
            value = self._values[key] = self._values.pop(key, None) or self._make(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
            return value


# Searches the rows of a run: names, arguments, results, errors, and what models wrote.
#
# Prompts are left out, because each repeats those before it.


def matching_rows(shown: ShownRun, words: str) -> list[str]:
    """Those that have all the words, each as a part of any text, in the order of the page; none without words."""
    wanted = words.casefold().split()
    if not wanted:
        return []
    texts = ((span, "\n".join(_texts(span)).casefold()) for span in shown.rows)
    return [shown.anchor(span) for span, text in texts if all(word in text for word in wanted)]


def row_text(span: Span) -> str:
    """All that the row holds, uncut."""
    return "\n\n".join(filter(None, [*_texts(span), *(_prompt(call) for call in span.calls)])) + "\n"


def _texts(span: Span) -> Iterator[str]:
    yield span.label
    yield span.error
    for call in span.calls:
        if call.kind == "llm":
            yield from (*said_by(call), call.reason)
            yield from (f"{wrote.name} {pretty(wrote.values)}" for wrote in written_calls(call))
        else:
            yield from (call.provider, pretty(given_to(call)), call.reason, traceback_of(call))
            yield from (pretty(result.value) for result in results_of(call))
    if not span.calls and span.data:
        yield pretty(span.data)


def _prompt(call: Call) -> str:
    if call.kind != "llm":
        return ""
    return "\n\n".join(f"[{message.role}]\n{message.text}" for message in prompt_of(call))
