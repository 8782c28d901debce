"""What there is to say of a fork beside the comparison of both runs.

In: a comparison, a fork, its origin and its model. Out: a `ForkReport`: what was changed, which calls of tools ran,
which were not recorded; the same as JSON.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from devhost.comparison.comparison import Comparison
from devhost.fork.fork import Fork, Origin
from devhost.fork.model import ForkedModel
from devhost.protocol.wire import JsonObject


@dataclass(frozen=True)
class ForkReport:
    comparison: Comparison
    trace: str
    question: str
    strategy: str
    at: int
    """How many rounds stay."""
    changed: tuple[str, ...]
    """The parameters, each as NAME=VALUE."""
    model: str
    """A sentence about what answers."""
    ran: tuple[str, ...]
    """The calls of tools that ran."""
    afterwards: str

    @classmethod
    def of(cls, comparison: Comparison, fork: Fork, origin: Origin, model: ForkedModel) -> "ForkReport":
        changed = (f"{name}={_plain(value)}" for name, value in fork.scenario.given.items())
        return cls(
            comparison,
            str(origin.file),
            origin.run.question,
            origin.strategy,
            fork.past.rounds,
            tuple(changed),
            model.description.notice,
            tuple(f"{call['tool']} {_plain(call['arguments'])}" for call in fork.ran),
            model.afterwards,
        )

    @property
    def kept(self) -> str:
        return f"round {self.at}" if self.at else "the question"

    @property
    def not_recorded(self) -> tuple[str, ...]:
        return self.comparison.right.not_recorded

    def sentences(self) -> Iterator[str]:
        """For people, after the tables."""
        if self.ran:
            yield f"Calls that ran: {_counted(self.ran)}."
        if self.not_recorded:
            yield f"Calls that are not in the recording: {_counted(self.not_recorded)}. --live-tools runs them."
        if self.afterwards:
            yield self.afterwards

    def as_json(self) -> JsonObject:
        return {
            "trace": self.trace,
            "at": self.at,
            "question": self.question,
            "strategy": self.strategy,
            "changed": list(self.changed),
            "model": self.model,
            "tools_that_ran": list(self.ran),
            "not_recorded": list(self.not_recorded),
            "recorded": self.comparison.left.as_json(),
            "fork": self.comparison.right.as_json(),
            "differences": self.comparison.as_json(),
        }


def _counted(calls: Iterable[str]) -> str:
    """By name."""
    counts = Counter(call.partition(" ")[0] for call in calls)
    return ", ".join(f"{count} × {name}" for name, count in sorted(counts.items()))


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
