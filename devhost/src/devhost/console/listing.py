"""The list of runs: what each was and how it ended, found without reading every trace each time."""

import contextlib
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Literal
from urllib.parse import urlencode

from devhost.console.folder import TRACE, RunFolder
from devhost.console.setup import NAME, SETUP, Setup
from devhost.errors import TraceError
from devhost.expected import rounds_of
from devhost.node.outputs.run import Run
from devhost.trace.flow import FlowEnded, FlowJudged, FlowLine, flow_ending
from devhost.trace.lines import Trace, is_written, read_trace
from devhost.trace.runs import TracedRun, run_of, traced_runs

# A run in a line: what was asked, what came of it, what it cost.

type State = Literal["answered", "failed", "running", "killed"]
STATES: tuple[State, ...] = ("answered", "failed", "running", "killed")


@dataclass(frozen=True)
class Listed:
    """What the files of a run say. Seconds, tokens and rounds are the sums of its turns."""

    name: str
    changed: float
    """When the newest of its files changed, in seconds since 1970."""
    started: datetime | None = None
    command: str = ""
    example: str = ""
    strategy: str = ""
    model: str = ""
    questions: tuple[str, ...] = ()
    answer: str = ""
    """Of the last turn."""
    error: str = ""
    words: str = ""
    """How the last turn ended, or that one is not as expected."""
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
    is_written: bool = False
    """Whether a process still writes the trace."""

    @property
    def state(self) -> State:
        if self.is_unfinished:
            return "running" if self.is_written else "killed"
        return "failed" if self.level == "bad" else "answered"

    @property
    def waits(self) -> bool:
        """For the next question."""
        return self.is_written and not self.is_unfinished

    @property
    def shown_words(self) -> str:
        return self.state if self.is_unfinished else self.words

    @property
    def shown_level(self) -> str:
        if self.is_unfinished:
            return "live" if self.is_written else "bad"
        return self.level

    @property
    def title(self) -> str:
        """What a person calls the run: its first question; what has none, by what it runs."""
        asked = next((" ".join(question.split()) for question in self.questions if question.strip()), "")
        return asked or self.strategy or self.name

    @property
    def when(self) -> datetime:
        """In the time zone of this machine."""
        return (self.started or datetime.fromtimestamp(self.changed).astimezone()).astimezone()

    @cached_property
    def searched(self) -> str:
        """All that a search looks at."""
        facts = (self.name, self.example, self.strategy, self.model, self.error, self.shown_words, self.answer)
        return "\n".join((*facts, *self.questions)).casefold()


# Reads what a run's files say. Of a trace, only the lines that it needs are parsed: the rest may be megabytes.

NEEDED = re.compile(rb'"event"\s*:\s*"(?:end|flow|flow_end|flow_judged)"|"invoke_agent_strategy"')
type Stamp = tuple[tuple[str, int, int], ...]
"""Of a run's files: the end of the name, when it changed, and its size."""
LONGEST = 20_000
"""Characters of a text that a search looks at."""


def read_run(folder: RunFolder, name: str) -> Listed:
    files = trace, _ = [folder.beside(name, ending) for ending in (TRACE, SETUP)]
    setup = folder.setup(name)
    run = Listed(
        name=name,
        changed=max((file.stat().st_mtime for file in files if file.exists()), default=0),
        of="" if setup is None else setup.of,
    )
    if not NAME.fullmatch(name):
        problem = "the console shows only runs whose names have the characters A-Z a-z 0-9 _ . - and no others"
        return replace(run, problem=problem)
    if not trace.exists():
        begun = setup or Setup()
        asked: dict[str, Any] = {
            "questions": (begun.question,),
            "strategy": begun.values.get("strategy", ""),
            "command": begun.kind,
        }
        return replace(run, **asked, is_unfinished=True)
    try:
        return replace(run, **_facts(read_trace(trace, NEEDED), setup or Setup()))
    except TraceError as error:
        return replace(run, problem=str(error).removeprefix(str(trace)).lstrip(", :"))


def _facts(trace: Trace, setup: Setup) -> dict[str, Any]:
    header, traced = trace.header, traced_runs(trace)
    runs = [run_of(each, header.strategy) for each in traced]
    return {
        "started": header.started,
        "command": header.command,
        "example": header.example,
        "strategy": header.strategy or header.description,
        "model": header.model.name,
        "seconds": sum(run.elapsed_seconds for run in runs),
        "tokens": sum(map(_tokens, runs)),
        "rounds": sum(map(rounds_of, runs)),
        **(_of_flow(trace, traced, runs) if header.command == "flow" else _of_runs(trace, traced, runs, setup)),
    }


def _of_runs(trace: Trace, traced: list[TracedRun], runs: list[Run], setup: Setup) -> dict[str, Any]:
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


def _of_flow(trace: Trace, traced: list[TracedRun], runs: list[Run]) -> dict[str, Any]:
    begins = [line for line in trace.lines if isinstance(line, FlowLine)]
    ends = [line for line in trace.lines if isinstance(line, FlowEnded)]
    of_last = [run for each, run in zip(traced, runs, strict=True) if begins and each.began >= begins[-1].at]
    judged = [line for line in trace.lines if isinstance(line, FlowJudged)]
    failures = [sentence for line in judged for sentence in line.failures]
    ending = flow_ending(ends[-1].status, of_last, failures) if ends else None
    return {
        "strategy": begins[-1].name if begins else trace.header.example,
        "questions": tuple(line.query[:LONGEST] for line in begins),
        "answer": str(ends[-1].outputs.get("answer", ""))[:LONGEST] if ends else "",
        "error": " ".join([ends[-1].error, *failures])[:LONGEST].strip() if ends else "",
        "words": ending.words if ending else "",
        "level": ending.level if ending else "",
        "is_unfinished": len(ends) < max(1, len(begins)),
    }


def _tokens(run: Run) -> int:
    total = run.usage.get("total_tokens") if isinstance(run.usage, dict) else None
    return int(total) if isinstance(total, int | float) else 0


# All runs of a folder. A trace is read again only when its time or its size has changed.


@dataclass(frozen=True)
class Look:
    runs: Sequence[Listed]
    """Those whose files are not traces, too: those have a problem."""
    unread: int
    """How many others there are, which the next look reads on."""


class Index:
    def __init__(self, folder: RunFolder, is_running: Callable[[str], bool] = lambda _name: False) -> None:
        """`is_running`: of a run whose process may not write its trace yet."""
        self._folder = folder
        self._is_running = is_running
        self._reading = threading.Lock()
        self._known: dict[str, tuple[Stamp, Listed]] = {}

    def look(self, seconds: float) -> Look:
        """What is known after it has read for so many seconds, the newest first; at least one run is read.

        A changed run that is unread is known as it was.
        """
        with self._reading:
            stamps = self._stamps()
            known = self._known = {name: kept for name, kept in self._known.items() if name in stamps}
            unread = [name for name, stamp in stamps.items() if name not in known or known[name][0] != stamp]
            unread.sort(key=lambda name: max(time for _, time, _ in stamps[name]))
            until = time.monotonic() + seconds
            has_read = False
            while unread and (not has_read or time.monotonic() < until):
                name, has_read = unread.pop(), True
                known[name] = stamps[name], read_run(self._folder, name)
            found = [self.listed(run) for _, run in known.values()]
        return Look(sorted(found, key=lambda run: (run.when, run.name), reverse=True), len(unread))

    def listed(self, run: Listed) -> Listed:
        written = is_written(self._folder.beside(run.name, TRACE)) or self._is_running(run.name)
        return replace(run, is_written=True) if written else run

    def _stamps(self) -> Mapping[str, Stamp]:
        found: dict[str, Stamp] = {}
        with os.scandir(self._folder.path) as entries:
            for entry in entries:
                ending = next((each for each in (TRACE, SETUP) if entry.name.endswith(each)), None)
                with contextlib.suppress(OSError):  # it is gone meanwhile, or a link that leads nowhere
                    if ending is not None and entry.is_file():
                        name, status = entry.name.removesuffix(ending), entry.stat()
                        found[name] = (*found.get(name, ()), (ending, status.st_mtime_ns, status.st_size))
        return {name: tuple(sorted(stamps)) for name, stamps in found.items()}


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


def find(look: Look, wanted: Wanted) -> Mapping[str, Any]:
    """The list as its page shows it: the runs of one page, and how many there are by state, "" for all of them."""
    traces = [run for run in look.runs if not run.problem]
    words = wanted.search.casefold().split()
    matching = [run for run in traces if all(word in run.searched for word in words)]
    shown = [run for run in matching if wanted.ending in (None, run.state)]
    pages = max(1, -(-len(shown) // ON_A_PAGE))
    page = min(wanted.page, pages)
    begin = (page - 1) * ON_A_PAGE
    return {
        "wanted": wanted,
        "runs": shown[begin : begin + ON_A_PAGE],
        "counts": {"": len(matching), **dict.fromkeys(STATES, 0), **Counter(run.state for run in matching)},
        "first": begin + 1,
        "total": len(shown),
        "page": page,
        "pages": pages,
        "problems": [run for run in look.runs if run.problem],
        "is_empty": not traces,
        "unread": look.unread,
    }
