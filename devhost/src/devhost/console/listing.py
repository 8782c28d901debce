"""The list of runs: what each was and how it ended, found without reading every trace each time."""

import contextlib
import math
import os
import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from devhost.console.runs import NAME, SETUP, TRACE, RunFolder, Setup
from devhost.errors import ConsoleError, TraceError
from devhost.evaluation.checks import rounds_of
from devhost.golang import well_formed
from devhost.node.outputs.run import Run
from devhost.trace.flow import FlowEndLine, FlowLine
from devhost.trace.lines import Trace, is_written, read_trace
from devhost.trace.runs import TracedRun, run_of, traced_runs

# Deletes a run: its files go to the folder `deleted` beside them, from which a person can take them back.

DELETED = "deleted"
CASE = ".case.yaml"
"""The end of the name of what a suite plays: it stays when the run goes."""


def delete_run(folder: RunFolder, name: str) -> Path:
    """Returns where its files are now. UnknownRunError; ConsoleError for a run that goes on."""
    if is_written(folder.trace(name)):
        raise ConsoleError(f"the run {name!r} goes on: stop it before you delete it")
    files = list(_files(folder, name))
    place = _free(folder.path / DELETED / name)
    try:
        place.mkdir(parents=True)
        for file in files:
            file.rename(place / file.name)
    except OSError as error:
        raise ConsoleError(f"the run {name!r} cannot be moved to {place}: {error.strerror}") from error
    return place


def _files(folder: RunFolder, name: str) -> Iterator[Path]:
    """NAME.anything, but not what belongs to a run with a longer name (NAME.2.jsonl), nor the script of a case."""
    longer = tuple(f"{other}." for other in folder.names() if other.startswith(f"{name}."))
    for file in folder.path.iterdir():
        if file.name.startswith(f"{name}.") and not file.name.startswith(longer) and not file.name.endswith(CASE):
            yield file


def _free(place: Path) -> Path:
    """This path, or with a number if a run of this name was deleted before."""
    number, free = 1, place
    while free.exists():
        number += 1
        free = place.with_name(f"{place.name}-{number}")
    return free


# A run in a line: what was asked, what came of it, what it cost.

type State = Literal["answered", "failed", "running", "killed"]
STATES: tuple[State, ...] = ("answered", "failed", "running", "killed")


class Summary(BaseModel):
    """What the files of a run say. Seconds, tokens and rounds are the sums of its turns."""

    model_config = ConfigDict(frozen=True)

    name: str
    changed: float
    """When the newest of its files changed, in seconds since 1970."""
    started: AwareDatetime | None = None
    command: str = ""
    example: str = ""
    strategy: str = ""
    model: str = ""
    questions: tuple[str, ...] = ()
    answer: str = ""
    """Of the last turn."""
    error: str = ""
    words: str = ""
    """How the last turn ended."""
    level: Literal["", "good", "limited", "bad"] = ""
    is_unfinished: bool = False
    """The last turn has no end, or none has begun."""
    seconds: float = 0
    tokens: int = 0
    rounds: int = 0
    of: str = ""
    """The run that this one is a fork of."""
    problem: str = ""
    """Why its file is not a trace."""


@dataclass(frozen=True)
class Listed:
    """A summary, and whether a process still writes the trace."""

    summary: Summary
    is_written: bool

    @property
    def state(self) -> State:
        if self.summary.is_unfinished:
            return "running" if self.is_written else "killed"
        return "failed" if self.summary.level == "bad" else "answered"

    @property
    def waits(self) -> bool:
        """For the next question."""
        return self.is_written and not self.summary.is_unfinished

    @property
    def words(self) -> str:
        return self.state if self.summary.is_unfinished else self.summary.words

    @property
    def level(self) -> str:
        if self.summary.is_unfinished:
            return "live" if self.is_written else "bad"
        return self.summary.level

    @property
    def question(self) -> str:
        return next((question for question in self.summary.questions if question.strip()), "not asked yet")

    @property
    def when(self) -> datetime:
        """In the time zone of this machine."""
        return (self.summary.started or datetime.fromtimestamp(self.summary.changed).astimezone()).astimezone()

    @cached_property
    def searched(self) -> str:
        """All that a search looks at."""
        found = self.summary
        facts = (found.name, found.example, found.strategy, found.model, found.error, self.words, found.answer)
        return "\n".join((*facts, *found.questions)).casefold()


# The summaries of a folder in a file, so that a console that starts finds them.
#
# A file that is missing, damaged or of another version is made again.

FILE = ".index.sqlite3"
TABLE = "CREATE TABLE summaries_1 (name TEXT PRIMARY KEY, stamp TEXT, summary TEXT)"
"""The number is another one when a summary holds something else."""
type Stamp = str
"""Times and sizes of a run's files."""


class Store:
    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE

    def load(self) -> dict[str, tuple[Stamp, Summary]]:
        try:
            with contextlib.closing(self._opened()) as index:
                rows = index.execute("SELECT name, stamp, summary FROM summaries_1").fetchall()
            return {name: (stamp, Summary.model_validate_json(summary)) for name, stamp, summary in rows}
        except (sqlite3.Error, ValidationError):
            with contextlib.suppress(OSError):
                self._file.unlink()
            return {}

    def save(self, changed: Mapping[str, tuple[Stamp, Summary]], gone: Iterable[str]) -> None:
        """A folder that cannot be written, or another console that writes, only costs time at the next start.

        Of a file that no run can have as its name, nothing was read. Its name may not even be UTF-8.
        """
        rows = [
            (name, stamp, summary.model_dump_json())
            for name, (stamp, summary) in changed.items()
            if NAME.fullmatch(name)
        ]
        with contextlib.suppress(sqlite3.Error), contextlib.closing(self._opened()) as index, index:
            index.executemany(
                "DELETE FROM summaries_1 WHERE name = ?", [(name,) for name in gone if NAME.fullmatch(name)]
            )
            index.executemany("INSERT OR REPLACE INTO summaries_1 VALUES (?, ?, ?)", rows)

    def _opened(self) -> sqlite3.Connection:
        index = sqlite3.connect(self._file)
        try:
            made = index.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
            if not made:
                index.execute(TABLE)
            elif made != [(TABLE,)]:  # a view or a trigger of somebody else's would run without end
                raise sqlite3.DatabaseError("not an index of this version")
        except sqlite3.Error:
            index.close()
            raise
        return index


# Reads a summary from a run's files. Of a trace, only the lines that it needs are parsed: the rest may be megabytes.

NEEDED = re.compile(rb'"event"\s*:\s*"(?:end|flow|flow_end)"|"invoke_agent_strategy"')
LONGEST = 20_000
"""Characters of a text that a search looks at."""
FLOW_ENDS: dict[str, tuple[Literal["good", "limited", "bad"], str]] = {
    "succeeded": ("good", "finished"),
    "partial-succeeded": ("limited", "partly succeeded"),
    "stopped": ("limited", "stopped"),
    "paused": ("limited", "waits for a form"),
    "failed": ("bad", "failed"),
}


def summary_of(name: str, folder: Path) -> Summary:
    files = trace, beside = folder / f"{name}{TRACE}", folder / f"{name}{SETUP}"
    setup = Setup.known(beside)
    summary = Summary(
        name=name,
        changed=max((file.stat().st_mtime for file in files if file.exists()), default=0),
        of="" if setup is None else setup.of,
    )
    if not NAME.fullmatch(name):
        problem = "the console shows only runs whose names have the characters A-Z a-z 0-9 _ . - and no others"
        return summary.model_copy(update={"problem": problem})
    if not trace.exists():
        begun = setup or Setup()
        asked = {"questions": (begun.question,), "strategy": begun.strategy or "", "command": begun.kind}
        return summary.model_copy(update={**asked, "is_unfinished": True})
    try:
        facts = _facts(read_trace(trace, NEEDED), setup or Setup())
        return summary.model_copy(update={name: _well_formed(value) for name, value in facts.items()})
    except TraceError as error:
        return summary.model_copy(update={"problem": str(error).removeprefix(str(trace)).lstrip(", :")})


def _well_formed(value: object) -> object:
    """Texts without halves of surrogate pairs, which the index cannot keep."""
    match value:
        case str():
            return well_formed(value)
        case tuple():
            return tuple(map(_well_formed, value))
    return value


def _facts(trace: Trace, setup: Setup) -> dict[str, object]:
    header, traced = trace.header, traced_runs(trace)
    runs = [run_of(each, header.strategy) for each in traced]
    return {
        "started": header.started,
        "command": header.command,
        "example": header.example,
        "strategy": header.tool or header.strategy or header.description,
        "model": header.model.name,
        "seconds": sum(run.elapsed_seconds for run in runs),
        "tokens": sum(map(_tokens, runs)),
        "rounds": sum(map(rounds_of, runs)),
        **(_of_flow(trace) if header.command == "flow" else _of_runs(trace, traced, runs, setup)),
    }


def _of_runs(trace: Trace, traced: list[TracedRun], runs: list[Run], setup: Setup) -> dict[str, object]:
    if trace.header.command == "tool":
        return {"questions": (trace.header.query or "",), "words": "tool call", "level": ""}
    questions = tuple(each.question[:LONGEST] for each in traced) or ((trace.header.query or setup.question)[:LONGEST],)
    if not runs:
        return {"questions": questions, "is_unfinished": True}
    last, is_unfinished = runs[-1], any(each.end is None for each in traced)
    error = None if is_unfinished else last.error
    return {
        "questions": questions,
        "answer": last.outputs.text[:LONGEST],
        "error": "" if error is None else f"{error.kind}: {error.message}"[:LONGEST],
        "words": last.ending.words,
        "level": last.ending.level,
        "is_unfinished": is_unfinished,
    }


def _of_flow(trace: Trace) -> dict[str, object]:
    begins = [line for line in trace.lines if isinstance(line, FlowLine)]
    ends = [line for line in trace.lines if isinstance(line, FlowEndLine)]
    level, words = FLOW_ENDS[ends[-1].status] if ends else ("", "")
    return {
        "questions": tuple(line.query[:LONGEST] for line in begins),
        "answer": str(ends[-1].outputs.get("answer", ""))[:LONGEST] if ends else "",
        "error": ends[-1].error[:LONGEST] if ends else "",
        "words": words,
        "level": level,
        "is_unfinished": len(ends) < max(1, len(begins)),
    }


def _tokens(run: Run) -> int:
    total = run.usage.get("total_tokens") if isinstance(run.usage, dict) else None
    return int(total) if isinstance(total, int | float) else 0


# The summaries of all runs of a folder. A trace is read again only when its time or its size has changed.
#
# The summaries live in memory, and in a file of the folder. A folder with gigabytes of new traces takes longer than a
# page can wait: then a thread reads on, the newest first.

SLICE_SECONDS = 0.1
"""After so many, the thread that reads on lets others look."""


@dataclass(frozen=True)
class Look:
    runs: Sequence[Listed]
    """Those whose files are not traces, too: their summaries have a problem."""
    unread: int
    """How many others there are, which a thread reads now."""


class Index:
    def __init__(self, folder: Path, is_running: Callable[[str], bool] = lambda _name: False) -> None:
        """`is_running`: of a run whose process may not write its trace yet."""
        self._folder = folder
        self._is_running = is_running
        self._store = Store(folder)
        self._reading = threading.Lock()
        self._kept: dict[str, tuple[Stamp, Summary]] | None = None
        self._reader: threading.Thread | None = None

    def look(self, seconds: float = math.inf) -> Look:
        """What is known after it has read for so many seconds; at least one run is read."""
        with self._reading:
            kept, unread = self._read(seconds)
            if unread and (self._reader is None or not self._reader.is_alive()):
                self._reader = threading.Thread(target=self._read_on, daemon=True)
                self._reader.start()
            found = [self._listed(summary) for _, summary in kept.values()]
        return Look(sorted(found, key=lambda run: (run.when, run.summary.name), reverse=True), unread)

    def only(self, names: Iterable[str]) -> Sequence[Listed]:
        """These runs, without a look at the others."""
        return [self._listed(summary_of(name, self._folder)) for name in names]

    def _read_on(self) -> None:
        unread = 1
        with contextlib.suppress(OSError):  # the folder is gone; who looks at it next is told
            while unread:
                with self._reading:
                    _, unread = self._read(SLICE_SECONDS)
                time.sleep(SLICE_SECONDS / 10)  # a lock goes to the thread that asks for it first

    def _read(self, seconds: float) -> tuple[Mapping[str, tuple[Stamp, Summary]], int]:
        """All that is known then, and how many runs are unread. A changed run that is unread is known as it was."""
        until = time.monotonic() + seconds
        kept = self._store.load() if self._kept is None else self._kept
        stamps = self._stamps()
        unread = [name for name, stamp in stamps.items() if name not in kept or kept[name][0] != stamp]
        unread.sort(key=lambda name: _newest(stamps[name]))
        changed: dict[str, tuple[Stamp, Summary]] = {}
        while unread and (not changed or time.monotonic() < until):
            name = unread.pop()
            changed[name] = stamps[name], summary_of(name, self._folder)
        gone = kept.keys() - stamps.keys()
        self._kept = {name: known for name, known in (kept | changed).items() if name not in gone}
        if changed or gone:
            self._store.save(changed, gone)
        return self._kept, len(unread)

    def _listed(self, summary: Summary) -> Listed:
        name = summary.name
        return Listed(summary, is_written(self._folder / f"{name}{TRACE}") or self._is_running(name))

    def _stamps(self) -> Mapping[str, Stamp]:
        found: dict[str, list[str]] = {}
        with os.scandir(self._folder) as entries:
            for entry in entries:
                for ending in (TRACE, SETUP):
                    if entry.name.endswith(ending) and entry.is_file():
                        with contextlib.suppress(FileNotFoundError):
                            status = entry.stat()
                            stamp = f"{ending}:{status.st_mtime_ns}:{status.st_size}"
                            found.setdefault(entry.name.removesuffix(ending), []).append(stamp)
        return {name: " ".join(sorted(stamps)) for name, stamps in found.items()}


def _newest(stamp: Stamp) -> int:
    """When a file of the run changed, in nanoseconds since 1970."""
    return max(int(each.split(":")[1]) for each in stamp.split())


# What a person looks for among the runs, and a page of what is found.

ON_A_PAGE = 50
PAGE = re.compile(r"[1-9][0-9]{0,5}")


@dataclass(frozen=True)
class Wanted:
    search: str = ""
    """Words, all of which a run must have."""
    ending: State | None = None
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Wanted":
        """Of an address. What makes no sense there is left out."""
        ending = next((state for state in STATES if state == query.get("ending")), None)
        page = PAGE.fullmatch(query.get("page", ""))
        return cls(query.get("search", "").strip(), ending, int(page.group()) if page else 1)

    def address(self, ending: str = "", page: int = 1) -> str:
        """Of the list with the same search, and another ending or page."""
        given = {"search": self.search, "ending": ending, "page": "" if page == 1 else str(page)}
        query = urlencode({name: value for name, value in given.items() if value})
        return f"/?{query}" if query else "/"


@dataclass(frozen=True)
class Found:
    wanted: Wanted
    runs: Sequence[Listed]
    """Those of the page."""
    counts: Mapping[str, int]
    """By state, of all that the search finds; "" for all of them."""
    first: int
    """The number of the first run of the page, from 1."""
    total: int
    """How many there are on all pages."""
    problems: Sequence[Listed]
    """Files that are not traces."""
    is_empty: bool
    """Whether the folder has no run at all."""
    unread: int
    """How many runs were not read yet: they may fit, too."""

    @property
    def pages(self) -> int:
        return max(1, -(-self.total // ON_A_PAGE))

    @property
    def page(self) -> int:
        return min(self.wanted.page, self.pages)


def find(look: Look, wanted: Wanted) -> Found:
    traces = [run for run in look.runs if not run.summary.problem]
    words = wanted.search.casefold().split()
    matching = [run for run in traces if all(word in run.searched for word in words)]
    counts = Counter(run.state for run in matching)
    shown = [run for run in matching if wanted.ending in (None, run.state)]
    page = min(wanted.page, max(1, -(-len(shown) // ON_A_PAGE)))
    begin = (page - 1) * ON_A_PAGE
    return Found(
        wanted=wanted,
        runs=shown[begin : begin + ON_A_PAGE],
        counts={"": len(matching), **{state: counts[state] for state in STATES}},
        first=begin + 1,
        total=len(shown),
        problems=[run for run in look.runs if run.summary.problem],
        is_empty=not traces,
        unread=look.unread,
    )
