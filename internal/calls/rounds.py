"""The tool rounds of one loop: calls run, and written down where later rounds look for them.

In: a turn and its planned calls. Out: events; then the transcript has the turn with one result per call, the
bibliography the sources, and the guard the calls.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from internal.calls.guards import PastCall, RepeatGuard
from internal.calls.plan import PlannedCall, refuse_calls
from internal.calls.runner import ToolOutcome, ToolRunner
from internal.conversation.transcript import CallResult, Transcript
from internal.host.clock import Deadline
from internal.model.reading import ModelTurn
from internal.report.events import CallsAnswered, Event, ToolRun
from internal.report.sources import Bibliography, citation_lines
from internal.text.kept_text import with_sources

REFUSED_AT_THE_END = "not run: no more tools run in this conversation turn"


@dataclass
class ToolRounds:
    """Runs and records the calls of a transcript, which may have had rounds before."""

    tools: ToolRunner
    transcript: Transcript
    bibliography: Bibliography
    guard: RepeatGuard
    _before: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Count from here."""
        self._before = self.transcript.rounds

    @property
    def done(self) -> int:
        """Rounds since this began."""
        return self.transcript.rounds - self._before

    def run(
        self, turn: ModelTurn, planned: Sequence[PlannedCall], parent: str, deadline: Deadline
    ) -> Generator[Event, None, None]:
        """Run the calls and append the round; sources are numbered in the model's order, not that of completion."""
        outcomes = yield from self.tools.run(planned, parent, deadline)
        self.transcript.append_round(turn.content, turn.opaque_body, [self._result(outcome) for outcome in outcomes])
        yield _answered(outcomes, self.done)
        self.guard.record_round(
            [
                PastCall(signature, outcome.status, outcome.tool_response, outcome.transient)
                for outcome in outcomes
                if (signature := outcome.planned.signature) is not None
            ]
        )

    def refuse(self, turn: ModelTurn, parent: str, deadline: Deadline) -> Generator[Event, None, None]:
        """Calls of a cut or closing turn run no more; they stand in the log."""
        if turn.calls:
            outcomes = yield from self.tools.run(refuse_calls(turn.calls, REFUSED_AT_THE_END), parent, deadline)
            yield _answered(outcomes, self.done + 1)

    def _result(self, outcome: ToolOutcome) -> CallResult:
        numbers = self.bibliography.add(outcome.sources)
        cited = citation_lines(zip(numbers, outcome.sources, strict=True))
        text = with_sources(outcome.tool_response, cited, self.tools.result_limit)
        return CallResult(outcome.planned.call, text)


def _answered(outcomes: Sequence[ToolOutcome], number: int) -> CallsAnswered:
    return CallsAnswered(
        tuple(
            ToolRun(number, outcome.planned.call.name, outcome.status, outcome.elapsed_seconds) for outcome in outcomes
        )
    )
