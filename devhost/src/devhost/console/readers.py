"""Reads a run for the console's pages, even while its trace is still being written."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from devhost.console.folder import Change
from devhost.console.listing import NEEDED
from devhost.errors import TraceError
from devhost.page.calls import given_to, prompt_of, results_of, said_by, traceback_of
from devhost.page.contents import pretty
from devhost.page.section import ShownRun
from devhost.page.turns import ShownTurn, shown_turns
from devhost.trace.flow import FormAsked
from devhost.trace.lines import SentenceLine, Trace, read_trace
from devhost.trace.runs import written_calls
from devhost.trace.timeline import Span

KEPT = 8
"""How many runs stay in memory. A trace of a hundred rounds takes tens of megabytes."""


@dataclass(frozen=True)
class ReadTrace:
    """A trace and the turns that a page shows of it."""

    trace: Trace | None
    """The trace, or `None` before its first line is written."""
    turns: Sequence[ShownTurn] = ()

    @property
    def awaited(self) -> tuple[str, float] | None:
        """The name of the unfinished call or node that began last, and when it began, in seconds since 1970.

        The name is empty if nothing but the turn itself has begun. The value is `None` if no turn is going on.
        """
        if self.trace is None or not self.turns or self.turns[-1].traced.ended is not None:
            return None
        name, began = max(self.turns[-1].open, key=lambda each: each[1], default=("", self.turns[-1].axis.began))
        return name, self.trace.header.started.timestamp() + began

    @property
    def form(self) -> FormAsked | None:
        """The form that waits for an answer in the last turn of a flow."""
        last = None
        if self.turns:
            last = self.turns[-1].traced
        if last is None or last.form is None or last.ended is not None:
            return None
        return last.form.form

    def row(self, anchor: str) -> tuple[ShownRun, Span] | None:
        """Returns the row with this id and its run, or `None` if there is no such row."""
        rows = ((shown, span) for turn in self.turns for shown in turn.runs for span in shown.rows)
        return next(((shown, span) for shown, span in rows if shown.anchor(span) == anchor), None)

    def matching(self, words: str) -> list[str]:
        """Returns the ids of the rows that contain all the words. Without words, no row matches."""
        wanted = words.casefold().split()
        rows = ((anchor, "\n".join(texts).casefold()) for turn in self.turns for anchor, texts in _rows(turn))
        return [anchor for anchor, text in rows if wanted and all(word in text for word in wanted)]


def _rows(turn: ShownTurn) -> Iterator[tuple[str, Iterable[str]]]:
    """Yields the id and the texts of each row."""
    if turn.run is None:
        for position, node in enumerate(turn.nodes, start=1):
            row = node.row
            error = "" if row.ended is None else row.ended.error
            yield f"node-{turn.number}-{position}", (row.label, error, pretty(row.inputs), pretty(row.outputs))
    yield from ((shown.anchor(span), _texts(shown, span)) for shown in turn.runs for span in shown.rows)


def _texts(shown: ShownRun, span: Span) -> Iterator[str]:
    """Yields the texts of a row. Only the new parts of a prompt count, because each prompt repeats the earlier ones."""
    yield from (span.label, span.error, "" if span.calls or span.children else pretty(span.data))
    for call in span.calls:
        if call.kind == "llm":
            changes = shown.prompt_changes.get(call.id)
            parts = [(True, prompt_of(call))] if changes is None else changes.parts
            yield from (said.text for is_new, part in parts if is_new for said in part)
            yield from (*said_by(call), *(f"{wrote.name} {pretty(wrote.values)}" for wrote in written_calls(call)))
        else:
            yield from (pretty(given_to(call)), traceback_of(call))
            yield from (pretty(value) for _, value in results_of(call))


def read_seen(file: Path, changed: Change, *, is_written: bool) -> ReadTrace:
    """Reads what a trace contains so far. Raises TraceError if the file is not a trace.

    `changed` is the time and size of the file, which a cache of results uses as part of its key.
    """
    if changed[1] <= 0:
        return ReadTrace(None)
    try:
        trace = read_trace(file)
    except TraceError as error:  # if a line is not valid, only the lines that the list of runs needs are read
        trace = read_trace(file, NEEDED)
        sentence = f"{error}. So only questions and answers are shown, without the calls."
        trace = replace(trace, lines=(SentenceLine(at=0, event="notice", sentence=sentence), *trace.lines))
    return ReadTrace(trace, shown_turns(trace, is_written=is_written))
