"""Reads the facts that the list of runs shows: what was asked, how the run ended, and what it cost."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Literal

from devhost.console.folder import RunFolder
from devhost.console.setup import SETUP, Setup
from devhost.errors import TraceError
from devhost.node.outputs.run import RunEnd
from devhost.observed import rounds_of
from devhost.trace.lines import Trace, read_trace
from devhost.trace.played import WAITS
from devhost.trace.turns import traced_turns

# One run of the list: its question, its result and its cost.

type State = Literal["answered", "waiting", "failed", "running", "stopped"]
STATES: tuple[State, ...] = ("answered", "waiting", "failed", "running", "stopped")
NOT_ENDED = RunEnd("", "limited")


def title_of(questions: Sequence[str], otherwise: str) -> str:
    """Returns the first question that has words, as the title of a run."""
    return next((" ".join(question.split()) for question in questions if question.strip()), otherwise)


@dataclass(frozen=True)
class ListedRun:
    """The facts from a run's files. Seconds, tokens and rounds are sums over its turns."""

    name: str
    began: float
    """The time when the run began, in seconds since 1970."""
    of: str = ""
    """The name of the original run, if this run is a fork."""
    details: str = ""
    """Details that distinguish the run from other runs of the same question."""
    strategy: str = ""
    model: str = ""
    questions: tuple[str, ...] = ()
    answer: str = ""
    """The answer of the last turn."""
    error: str = ""
    ending: RunEnd = NOT_ENDED
    """The end of the last turn, which may be a failed expectation or a form that waits for an answer."""
    is_unfinished: bool = True
    """Whether a turn has not ended, or no turn has begun."""
    seconds: float = 0
    tokens: int = 0
    rounds: int = 0
    problem: str = ""
    """Why the file is not a valid trace; empty if it is one."""
    goes_on: bool = False
    """Whether a process writes the trace or is about to."""

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
    def when(self) -> datetime:
        """The time when the run began, in the time zone of this machine."""
        return datetime.fromtimestamp(self.began).astimezone()

    @property
    def badge(self) -> tuple[str, str]:
        """The words and the level of the badge in the list."""
        if self.state in {"running", "stopped"}:
            return self.state, "live" if self.goes_on else "limited"
        return self.ending.words, self.ending.level

    @property
    def title(self) -> str:
        return title_of(self.questions, self.strategy or self.name)

    def has(self, words: Sequence[str]) -> bool:
        """Returns whether the texts of the run contain all words, which must be case-folded."""
        return all(word in self._text for word in words)

    @cached_property
    def _text(self) -> str:
        facts = (
            self.name,
            self.details,
            self.strategy,
            self.model,
            self.error,
            self.badge[0],
            self.answer,
            *self.questions,
        )
        return "\n".join(facts).casefold()


# Reading a run's files. Only the needed lines of a trace are parsed, because other lines may be megabytes long.

NEEDED = re.compile(
    rb'"event"\s*:\s*"(?:end|flow|flow_end|flow_judged|form_\w+|node_start|node_end)"|"invoke_agent_strategy"'
)


def read_run(folder: RunFolder, name: str) -> ListedRun:
    trace = folder.trace(name)
    setup = folder.setup(name) or Setup()
    if trace.exists():
        file = trace
    else:
        file = folder.beside(name, SETUP)
    run = ListedRun(
        name,
        file.stat().st_mtime,
        setup.of,
        " · ".join(setup.details),
        strategy=setup.values.get("strategy", ""),
        questions=(setup.question or f"node {setup.values.get('node', '')}".removesuffix("node "),),
    )
    try:
        if file != trace:
            return run
        return _with_trace(run, read_trace(trace, NEEDED))
    except TraceError as error:
        return replace(run, problem=str(error).removeprefix(str(trace)).lstrip(", :"))


def _with_trace(run: ListedRun, trace: Trace) -> ListedRun:
    header = trace.header
    turns = traced_turns(trace)
    run = replace(
        run,
        details=run.details or " · ".join(filter(None, (header.example, header.description))),
        began=header.started.timestamp(),
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
