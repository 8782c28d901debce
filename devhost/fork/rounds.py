"""The rounds of a traced run: each is a turn of the model, with the tries that failed before it.

In: a run. Out: its rounds, numbered from 1 in the order in which they began, also where a strategy numbers them
differently, such as within each subtask.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devhost.errors import TraceError
from devhost.recording.turns import model_calls
from devhost.trace.calls import Call
from devhost.trace.runs import TracedRun
from devhost.trace.turns import written_calls


@dataclass(frozen=True)
class Round:
    number: int
    calls: tuple[Call, ...]
    """Of the model. The last one is the turn, unless `is_answered` is false."""

    @property
    def is_answered(self) -> bool:
        return not self.calls[-1].error and self.calls[-1].ended is not None


def rounds(run: TracedRun) -> list[Round]:
    return list(_rounds(run))


def _rounds(run: TracedRun) -> Iterator[Round]:
    number, tries = 1, list[Call]()
    for call in model_calls(run.calls):
        tries.append(call)
        made = Round(number, tuple(tries))
        if made.is_answered:
            yield made
            number, tries = number + 1, []
    if tries:
        yield Round(number, tuple(tries))


@dataclass(frozen=True)
class Past:
    """What stays of a run."""

    run: TracedRun
    rounds: int
    models: tuple[Call, ...]
    """The model calls of these rounds."""
    until: float
    """The time in the trace when the first later round began; infinity if there is none."""

    @classmethod
    def of(cls, run: TracedRun, at: int, file: Path) -> "Past":
        """TraceError for a round that the run does not have."""
        made = rounds(run)
        answered = [each for each in made if each.is_answered]
        if at > len(answered):
            there_are = f"it has the rounds 1 to {len(answered)}" if answered else "its model answered no call"
            raise TraceError(f"--at {at}: there is no round {at} in this run of {file}; {there_are}")
        kept, later = made[:at], made[at:]
        until = later[0].calls[0].began if later else float("inf")
        return cls(run, at, tuple(call for each in kept for call in each.calls), until)


def round_lines(run: TracedRun) -> list[str]:
    """A line for each round: what the model wrote."""
    return [f"{each.number}  {gist(each)}" for each in rounds(run)]


def gist(made: Round) -> str:
    """What the model wrote, in a few words."""
    last = made.calls[-1]
    if not made.is_answered:
        return f"no answer: {last.error or 'the run ended first'}"[:100]
    called = ", ".join(call.name for call in written_calls(last))
    return f"calls {called}" if called else "answers"
