"""The list of runs: what each was, how it ended, and which of them a person looks for."""

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from devhost.console.folder import TRACE, RunFolder
from devhost.console.setup import SETUP, Setup
from devhost.errors import TraceError
from devhost.expected import rounds_of
from devhost.flow.played import WAITS
from devhost.flow.traces import traced_turns
from devhost.node.outputs.run import Run
from devhost.trace.lines import Trace, is_written, read_trace
from devhost.trace.runs import TracedRun, run_of, traced_runs

# A run in a line: what was asked, what came of it, what it cost.

type State = Literal["answered", "waiting", "failed", "running", "stopped"]
STATES: tuple[State, ...] = ("answered", "waiting", "failed", "running", "stopped")


@dataclass(frozen=True)
class Listed:
    """What the files of a run say. Seconds, tokens and rounds are the sums of its turns."""

    name: str
    when: datetime
    """In the time zone of this machine."""
    of: str = ""
    """The run that this one is a fork of."""
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
    problem: str = ""
    """Why its file is not a trace."""
    is_written: bool = False
    """Whether a process still writes the trace."""

    @property
    def state(self) -> State:
        if self.is_unfinished:
            return ("waiting" if self.words else "running") if self.is_written else "stopped"
        if self.level == "bad":
            return "failed"
        return "waiting" if self.words.startswith("waits for") else "answered"

    @property
    def can_go_on(self) -> bool:
        """With the next question."""
        return self.is_written and not self.is_unfinished

    @property
    def badge(self) -> tuple[str, str]:
        """Words and level."""
        if self.state in {"running", "stopped"}:
            return self.state, "live" if self.is_written else "limited"
        return self.words, self.level

    @property
    def title(self) -> str:
        """What a person calls the run: its first question; what has none, by what it runs."""
        asked = next((" ".join(question.split()) for question in self.questions if question.strip()), "")
        return asked or self.strategy or self.name

    def has(self, words: Sequence[str]) -> bool:
        facts = (self.name, self.strategy, self.model, self.error, self.badge[0], self.answer, *self.questions)
        text = "\n".join(facts).casefold()
        return all(word in text for word in words)


# Reads what a run's files say. Of a trace, only the lines that it needs are parsed: the rest may be megabytes.

NEEDED = re.compile(
    rb'"event"\s*:\s*"(?:end|node_start|node_end|flow|form_\w+|flow_end|flow_judged)"|"invoke_agent_strategy"'
)


def read_run(folder: RunFolder, name: str) -> Listed:
    trace, setup = folder.trace(name), folder.setup(name) or Setup()
    file = trace if trace.exists() else folder.beside(name, SETUP)
    run = Listed(name, datetime.fromtimestamp(file.stat().st_mtime).astimezone(), setup.of)
    if file != trace:
        return replace(run, questions=(setup.question,), strategy=setup.values.get("strategy", ""), is_unfinished=True)
    try:
        return replace(run, **_facts(read_trace(trace, NEEDED), setup))
    except TraceError as error:
        return replace(run, problem=str(error).removeprefix(str(trace)).lstrip(", :"))


def _facts(trace: Trace, setup: Setup) -> dict[str, Any]:
    header, traced = trace.header, traced_runs(trace)
    runs = [run_of(each, header.strategy) for each in traced]
    return {
        "when": header.started.astimezone(),
        "strategy": header.strategy or header.description,
        "model": header.model.name,
        "seconds": sum(run.elapsed_seconds for run in runs),
        "tokens": sum(map(_tokens, runs)),
        "rounds": sum(map(rounds_of, runs)),
        **(_of_flow(trace) if header.command == "flow" else _of_runs(trace, traced, runs, setup)),
    }


def _of_runs(trace: Trace, traced: list[TracedRun], runs: list[Run], setup: Setup) -> dict[str, Any]:
    questions = tuple(each.question for each in traced) or (trace.header.query or setup.question,)
    if not runs or any(each.end is None for each in traced):
        return {"questions": questions, "is_unfinished": True}
    last = runs[-1]
    return {
        "questions": questions,
        "answer": last.outputs.text,
        "error": "" if last.error is None else f"{last.error.kind}: {last.error.message}",
        "words": last.ending.words,
        "level": last.ending.level,
    }


def _of_flow(trace: Trace) -> dict[str, Any]:
    turns = traced_turns(trace)
    questions = {"questions": tuple(turn.facts.query for turn in turns)}
    if not turns:
        return {"strategy": trace.header.example, **questions, "is_unfinished": True}
    last = turns[-1]
    asked = {"strategy": last.facts.name, **questions}
    if last.ended is None:
        waits = {"words": WAITS.words, "level": WAITS.level} if last.form else {}
        return {**asked, "is_unfinished": True, **waits}
    last.failures = [sentence for turn in turns for sentence in turn.failures]
    return {
        **asked,
        "answer": last.answer,
        "error": " ".join([last.end.error if last.end.status != "paused" else "", *last.failures]).strip(),
        "words": last.ending.words,
        "level": last.ending.level,
    }


def _tokens(run: Run) -> int:
    total = run.usage.get("total_tokens") if isinstance(run.usage, dict) else None
    return int(total) if isinstance(total, int | float) else 0


# All runs of a folder. A trace is read again only when its time or its size has changed.

type Stamp = tuple[tuple[int, int], ...]


class Index:
    def __init__(self, folder: RunFolder, is_running: Callable[[str], bool] = lambda _name: False) -> None:
        """`is_running`: of a run whose process may not write its trace yet."""
        self._folder = folder
        self._is_running = is_running
        self._reading = threading.Lock()
        self._known: dict[str, tuple[Stamp, Listed]] = {}

    def runs(self) -> Sequence[Listed]:
        """The newest first. Those whose files are not traces, too: those have a problem."""
        with self._reading:
            known = {}
            for name in self._folder.names():
                stamp, kept = self._stamp(name), self._known.get(name)
                known[name] = kept if kept and kept[0] == stamp else (stamp, read_run(self._folder, name))
            self._known = known
        listed = [
            replace(run, is_written=is_written(self._folder.beside(name, TRACE)) or self._is_running(name))
            for name, (_, run) in known.items()
        ]
        return sorted(listed, key=lambda run: (run.when, run.name), reverse=True)

    def _stamp(self, name: str) -> Stamp:
        files = [self._folder.beside(name, ending) for ending in (TRACE, SETUP)]
        statuses = [file.stat() for file in files if file.is_file()]
        return tuple((status.st_mtime_ns, status.st_size) for status in statuses)


MOST_SHOWN = 100


def find(runs: Sequence[Listed], search: str, ending: str) -> Mapping[str, Any]:
    """The list as its page shows it: those that have all words, and how many there are by state, "" for all of them."""
    traces = [run for run in runs if not run.problem]
    matching = [run for run in traces if run.has(search.casefold().split())]
    shown = [run for run in matching if ending in {"", run.state}]
    return {
        "search": search,
        "ending": ending,
        "runs": shown[:MOST_SHOWN],
        "counts": {"": len(matching), **dict.fromkeys(STATES, 0), **Counter(run.state for run in matching)},
        "total": len(shown),
        "problems": [run for run in runs if run.problem],
        "is_empty": not traces,
    }
