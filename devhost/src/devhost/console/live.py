"""Runs as they go on: read from their traces while these are written, and rendered piece by piece."""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment

from devhost.console.pages.render import Pages
from devhost.errors import TraceError
from devhost.golang import well_formed
from devhost.page.calls import model_call, tool_call
from devhost.page.contents import Attachments, pretty
from devhost.page.shown import ShownRun, shown_run
from devhost.text import open_file
from devhost.trace.lines import Trace, header_of, is_written, lines_of
from devhost.trace.runs import Call, traced_runs
from devhost.trace.timeline import OPEN, Span

if TYPE_CHECKING:
    from devhost.trace.lines import Header, TraceLine


# Reads a trace while it is being written: each read parses only what was added since the last one.


class GrowingTrace:
    """Not for several threads at once."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._begin()

    def _begin(self) -> None:
        self._offset = 0
        self._number = 0
        self._rest = b""
        self._first = b""
        """The first line: it has the moment at which the trace began, so that another trace has another one."""
        self._header: Header | None = None
        self._lines: list[TraceLine] = []
        self._trace: Trace | None = None

    def read(self) -> Trace | None:
        """The trace as far as it is written; None before its first line is. `cut_off`: its last line is incomplete.

        The same value as before if nothing was added. A file that has become shorter, or that begins with another line,
        is another trace.

        Raises TraceError for a file that is no trace, at every read.
        """
        try:
            return self._read(self._added())
        except TraceError:
            self._begin()
            raise

    def _added(self) -> bytes | None:
        """What was added since the last read; None if there is no file."""
        try:
            with open_file(self._file) as file:
                is_shorter = file.seek(0, 2) < self._offset
                file.seek(0)
                if is_shorter or file.read(len(self._first)) != self._first:
                    self._begin()
                file.seek(self._offset)
                return file.read()
        except FileNotFoundError:
            self._begin()
            return None
        except OSError as error:
            raise TraceError(f"{self._file} cannot be read: {error.strerror}") from error

    def _read(self, added: bytes | None) -> Trace | None:
        if not added:
            return self._trace
        self._offset += len(added)
        *whole, self._rest = (self._rest + added).split(b"\n")
        numbered = list(enumerate(whole, start=self._number + 1))
        self._number += len(whole)
        written = [(number, text) for number, text in numbered if text.strip()]
        if self._header is None and written:
            (first, text), *written = written
            self._header = header_of(self._file, first, text)
            self._first = text if first == 1 else b""
        self._lines += lines_of(self._file, written)
        if self._header is not None:
            self._trace = Trace(self._header, tuple(self._lines), cut_off=bool(self._rest.strip()))
        return self._trace


# A run's section of a page in pieces, each an element with an id, so that only what has changed is sent.
#
# The rows of a group that has ended are rendered once: of a long run, a change costs what its last group costs.


@dataclass(frozen=True)
class Section:
    """One run of a conversation."""

    number: int
    scale: str
    """The style of the timeline: its length."""
    pieces: Mapping[str, str]
    """HTML by the id of its element, in the order of the page."""
    rows: tuple[str, ...]
    """The ids of those pieces that are rows, in their order."""


@dataclass
class Changes:
    """Of one listener: what it has been told. Not for several threads at once."""

    _told: dict[int, Section] = field(default_factory=dict)

    def knows(self, number: int) -> bool:
        return number in self._told

    def of(self, section: Section) -> dict[str, object] | None:
        """What is new, as JSON; None if nothing is."""
        before = self._told.get(section.number)
        self._told[section.number] = section
        if section == before:
            return None
        known = {} if before is None else before.pieces
        return {
            "run": section.number,
            "scale": section.scale,
            "rows": section.rows,
            "pieces": {name: html for name, html in section.pieces.items() if known.get(name) != html},
        }


class Rendering:
    """Of one run's trace; keeps what cannot change any more."""

    def __init__(self, environment: Environment) -> None:
        self._facts, self._answer, self._axis, self._results = (
            _macro(environment, "run.html.j2", name) for name in ("facts", "answer", "axis", "results")
        )
        self._row = _macro(environment, "row.html.j2", "row")
        self._ended: dict[tuple[str, bool, int], str] = {}

    def section(self, shown: ShownRun) -> Section:
        name = f"run-{shown.number}"
        rows = {shown.anchors[id(span)]: self._html_of(span, shown) for span in shown.spans}
        pieces = {
            f"{name}-facts": self._facts(shown),
            f"{name}-answer": self._answer(shown),
            f"{name}-axis": self._axis(shown),
            **rows,
            f"{name}-results": self._results(shown),
        }
        return Section(shown.number, shown.axis.scale, pieces, tuple(rows))

    def _html_of(self, span: Span, shown: ShownRun) -> str:
        inside = list(_with_children(span))
        # What a plugin printed may still come.
        key = (shown.anchors[id(span)], shown.is_open(span), len(inside))
        html = self._ended.get(key)
        if html is None:
            html = self._row(span, 0, shown, lazy=True)
            if all(each.status != OPEN for each in inside):
                self._ended[key] = html
        return html


def _macro(environment: Environment, template: str, name: str) -> Callable[..., str]:
    found = getattr(environment.get_template(template).module, name)
    return lambda *given, **named: str(found(*given, **named))


def _with_children(span: Span) -> Iterator[Span]:
    yield span
    for child in span.children:
        yield from _with_children(child)


# Searches the rows of a run: names, arguments, results, errors, and what models wrote.
#
# Prompts are left out, because each repeats those before it.


def matching_rows(shown: ShownRun, words: str) -> list[str]:
    """Those that have all the words, each as a part of any text, in the order of the page; none without words."""
    wanted = words.casefold().split()
    if not wanted:
        return []
    return [shown.anchors[id(span)] for _, span in shown.rows if _has_all(wanted, "\n".join(_texts(span)).casefold())]


def _has_all(words: Sequence[str], text: str) -> bool:
    return all(word in text for word in words)


def row_text(span: Span) -> str:
    """All that the row holds, uncut."""
    return "\n\n".join(filter(None, [*_texts(span), *(_prompt(call) for call in span.calls)])) + "\n"


def _texts(span: Span) -> Iterator[str]:
    yield span.label
    yield span.error
    yield from span.printed
    for call in span.calls:
        if call.kind == "llm":
            said = model_call(call)
            yield from (said.thought, said.text, said.error)
            yield from (f"{wrote.name} {pretty(wrote.values)}" for wrote in said.called)
        else:
            asked = tool_call(call)
            yield from (asked.provider, pretty(asked.arguments), asked.error, asked.traceback)
            yield from (pretty(result.value) for result in asked.results)
    if not span.calls and span.data:
        yield pretty(span.data)


def _prompt(call: Call) -> str:
    if call.kind != "llm":
        return ""
    return "\n\n".join(f"[{message.role}]\n{message.text}" for message in model_call(call).prompt)


# The traces that pages are looking at, each read once for all of them.

KEPT = 8
"""So many traces stay parsed; one of a hundred rounds takes tens of megabytes."""


@dataclass(frozen=True)
class Seen:
    """A trace as far as it was written."""

    trace: Trace | None
    """None before its first line."""
    runs: Sequence[ShownRun] = ()


class RunReader:
    def __init__(self, file: Path) -> None:
        self.file = file
        self._growing = GrowingTrace(file)
        self._reading = threading.Lock()
        self._seen = Seen(None)
        self._written = False

    def read(self) -> Seen:
        """The same value as before if nothing was added; a TraceError comes each time again."""
        with self._reading:
            written = is_written(self.file)  # asked first: nothing is added after a no
            trace = self._growing.read()
            if trace is not self._seen.trace or written != self._written:
                self._seen = Seen(trace, () if trace is None else _shown(trace, is_written=written))
                self._written = written
            return self._seen


def _shown(trace: Trace, *, is_written: bool) -> Sequence[ShownRun]:
    attachments, runs = Attachments(None), traced_runs(trace)
    return [
        shown_run(number, each, trace, attachments, is_written=is_written and each is runs[-1])
        for number, each in enumerate(runs, start=1)
    ]


class Readers:
    def __init__(self) -> None:
        self._readers: OrderedDict[Path, RunReader] = OrderedDict()
        self._choosing = threading.Lock()

    def of(self, file: Path) -> RunReader:
        with self._choosing:
            reader = self._readers.setdefault(file, RunReader(file))
            self._readers.move_to_end(file)
            while len(self._readers) > KEPT:
                self._readers.popitem(last=False)
            return reader


# What one browser is told of the run that it watches: Server-Sent Events.


class Listener:
    """One browser that watches one run."""

    def __init__(self, name: str, reader: RunReader, pages: Pages) -> None:
        self._name = name
        self._pages = pages
        self._reader = reader
        self._rendering = Rendering(pages.environment)
        self._changes = Changes()
        self._seen: Seen | None = None
        self._problem = self._head = ""

    def news(self) -> list[str]:
        """Events of what has changed since it was asked before; at first of everything."""
        try:
            seen = self._reader.read()
        except TraceError as error:
            return self._new_problem(str(error))
        if seen is self._seen:
            return self._new_problem("")
        if self._seen is not None and self._seen.trace is not None and seen.trace is None:
            # A run that writes over it empties it first.
            file = self._reader.file
            return [] if file.exists() else self._new_problem(f"{file} is gone: this page shows what was in it.")
        began = self._new_trace(seen) if _header(seen) is not _header(self._seen) else []
        self._seen = seen
        return [*self._new_problem(""), *began, *self._new_head(seen), *self._new_sections(seen)]

    def _new_trace(self, seen: Seen) -> list[str]:
        """When it began. A run may have written over the trace that the browser shows: nothing of that one stays."""
        self._rendering = Rendering(self._pages.environment)
        self._changes = Changes()
        return [] if seen.trace is None else [_event("trace", {"began": seen.trace.header.started.isoformat()})]

    def _new_problem(self, sentence: str) -> list[str]:
        """An empty one if there is none any more."""
        if sentence == self._problem:
            return []
        self._problem = sentence
        return [_event("problem", {"sentence": sentence})]

    def _new_head(self, seen: Seen) -> Iterator[str]:
        head = self._pages.render("run_head.html.j2", name=self._name, trace=seen.trace, is_asked=bool(seen.runs))
        if seen.trace is not None and head != self._head:
            self._head = head
            yield _event("head", {"html": head})

    def _new_sections(self, seen: Seen) -> Iterator[str]:
        for shown in seen.runs:
            section = self._rendering.section(shown)
            is_new = not self._changes.knows(section.number)
            change = self._changes.of(section)
            if change is not None:
                frame = self._pages.render("run_frame.html.j2", shown=shown, pieces={}) if is_new else ""
                yield _event("section", {**change, "frame": frame})


def _header(seen: Seen | None) -> object:
    return None if seen is None or seen.trace is None else seen.trace.header


def _event(name: str, data: Mapping[str, object]) -> str:
    return f"event: {name}\ndata: {well_formed(json.dumps(data, ensure_ascii=False))}\n\n"
