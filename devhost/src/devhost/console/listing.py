"""The list of runs: what each was, how it ended, and which of them a person looks for."""

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from devhost.console.folder import TRACE, Change, RunFolder, changed_at
from devhost.console.setup import SETUP, Setup
from devhost.errors import TraceError
from devhost.expected import rounds_of
from devhost.node.outputs.run import Ending
from devhost.trace.lines import Trace, read_trace
from devhost.trace.played import WAITS
from devhost.trace.turns import traced_turns

# A run in a line: what was asked, what came of it, what it cost.

type State = Literal["answered", "waiting", "failed", "running", "stopped"]
STATES: tuple[State, ...] = ("answered", "waiting", "failed", "running", "stopped")
NOT_ENDED = Ending("", "limited")


def title_of(questions: Sequence[str], otherwise: str) -> str:
    """What a person calls a run: its first question."""
    return next((" ".join(question.split()) for question in questions if question.strip()), otherwise)


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
    ending: Ending = NOT_ENDED
    """Of the last turn, or that one is not as expected, or that its form waits."""
    is_unfinished: bool = True
    """The last turn has no end, or none has begun."""
    seconds: float = 0
    tokens: int = 0
    rounds: int = 0
    problem: str = ""
    """Why its file is not a trace."""
    goes_on: bool = False

    @property
    def state(self) -> State:
        if self.is_unfinished and not (self.goes_on and self.ending.words):
            if self.goes_on:
                return "running"
            return "stopped"
        if self.ending.level == "bad":
            return "failed"
        if self.ending.words.startswith("waits for"):
            return "waiting"
        return "answered"

    @property
    def badge(self) -> tuple[str, str]:
        """Words and level."""
        if self.state in {"running", "stopped"}:
            return self.state, "live" if self.goes_on else "limited"
        return self.ending.words, self.ending.level

    @property
    def title(self) -> str:
        return title_of(self.questions, self.strategy or self.name)

    def has(self, words: Sequence[str]) -> bool:
        facts = (self.name, self.strategy, self.model, self.error, self.badge[0], self.answer, *self.questions)
        text = "\n".join(facts).casefold()
        return all(word in text for word in words)


# Reads what a run's files say. Of a trace, only the lines that it needs are parsed: the rest may be megabytes.

NEEDED = re.compile(
    rb'"event"\s*:\s*"(?:end|flow|flow_end|flow_judged|form_\w+|node_start|node_end)"|"invoke_agent_strategy"'
)


def read_run(folder: RunFolder, name: str) -> Listed:
    trace = folder.trace(name)
    setup = folder.setup(name) or Setup()
    file = trace if trace.exists() else folder.beside(name, SETUP)
    run = Listed(
        name,
        datetime.fromtimestamp(file.stat().st_mtime).astimezone(),
        setup.of,
        strategy=setup.values.get("strategy", ""),
        questions=(setup.question,),
    )
    try:
        if file != trace:
            return run
        return _with_trace(run, read_trace(trace, NEEDED))
    except TraceError as error:
        return replace(run, problem=str(error).removeprefix(str(trace)).lstrip(", :"))


def _with_trace(run: Listed, trace: Trace) -> Listed:
    header = trace.header
    turns = traced_turns(trace)
    run = replace(
        run,
        when=header.started.astimezone(),
        strategy=header.strategy or header.example or header.description,
        model=header.model.name,
        questions=tuple(turn.question for turn in turns) or (header.query or run.questions[0],),
        seconds=sum(turn.seconds for turn in turns),
        tokens=sum(turn.tokens for turn in turns),
        rounds=sum(rounds_of(each) for turn in turns for each in turn.outcomes),
    )
    if not turns:
        return run
    last = turns[-1]
    run = replace(run, strategy=last.facts.name or run.strategy)
    if any(turn.ended is None for turn in turns):
        if last.form:
            return replace(run, ending=WAITS)
        return run
    last.failures = [sentence for turn in turns for sentence in turn.failures]
    error = " ".join([last.end.error if last.end.status != "paused" else "", *last.failures]).strip()
    return replace(run, answer=last.answer, error=error, ending=last.ending, is_unfinished=False)


# All runs of a folder. A trace is read again only when it has changed.


class Index:
    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._reading = threading.Lock()
        self._known: dict[str, tuple[Sequence[Change], Listed]] = {}

    def runs(self, goes_on: Callable[[str], bool]) -> Sequence[Listed]:
        """The newest first. Those whose files are not traces, too: those have a problem. `goes_on`: of a name."""
        with self._reading:
            known = {}
            for name in self._folder.names():
                stamp = [changed_at(self._folder.beside(name, ending)) for ending in (TRACE, SETUP)]
                kept = self._known.get(name)
                known[name] = kept if kept and kept[0] == stamp else (stamp, read_run(self._folder, name))
            self._known = known
        listed = [replace(run, goes_on=goes_on(name)) for name, (_, run) in known.items()]
        return sorted(listed, key=lambda run: (run.when, run.name), reverse=True)
