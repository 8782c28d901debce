"""The list of runs: what each was, how it ended, and which of them a person looks for."""

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

# A run in a line: what was asked, what came of it, what it cost.

type State = Literal["answered", "waiting", "failed", "running", "stopped"]
STATES: tuple[State, ...] = ("answered", "waiting", "failed", "running", "stopped")
NOT_ENDED = RunEnd("", "limited")


def title_of(questions: Sequence[str], otherwise: str) -> str:
    """What a person calls a run: its first question."""
    return next((" ".join(question.split()) for question in questions if question.strip()), otherwise)


@dataclass(frozen=True)
class ListedRun:
    """What the files of a run say. Seconds, tokens and rounds are the sums of its turns."""

    name: str
    began: float
    """In seconds since 1970."""
    of: str = ""
    """The run that this one is a fork of."""
    details: str = ""
    """What tells it apart from other runs of the same question."""
    strategy: str = ""
    model: str = ""
    questions: tuple[str, ...] = ()
    answer: str = ""
    """The answer of the last turn."""
    error: str = ""
    ending: RunEnd = NOT_ENDED
    """How the last turn ended, or that a turn is not as expected, or that its form waits."""
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
    def when(self) -> datetime:
        """In the time zone of this machine."""
        return datetime.fromtimestamp(self.began).astimezone()

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


# Reads what a run's files say. Of a trace, only the lines that it needs are parsed: the rest may be megabytes.

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
