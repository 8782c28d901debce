"""Plays the turns of a case, and checks each turn against its expectation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from devhost.case import Case
from devhost.conversation import Conversation, CountingModel
from devhost.expected import Check, Expected
from devhost.host.host import ToolHost
from devhost.models.backend import ModelDescription
from devhost.node.outputs.run import ToolCalls, report
from devhost.observed import NOT_WELL, Observed
from devhost.process.session import Watcher
from devhost.protocol.wire import JsonObject
from devhost.script import ModelOfNode, TurnScript
from devhost.trace.flow import FlowJudged
from devhost.trace.played import PlayedTurn, flow_report
from devhost.words import counted


@dataclass(frozen=True)
class CaseTurn:
    """A played turn with its checks."""

    said: TurnScript
    played: PlayedTurn
    place: str
    """The name of the turn in messages."""
    checks: tuple[Check, ...]
    remark: str = ""
    """A remark about the models, and about the conversation if it ends too early."""
    model: ModelDescription | None = None
    """The model of a strategy."""
    spending: JsonObject | None = None
    """The usage that the provider of the strategy's model counted."""

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence for each expectation that failed: what was expected, what was found, and where."""
        return tuple(f"{self.place}: {check.sentence}" for check in self.checks if not check.passed)

    @property
    def has_expectations(self) -> bool:
        return self.said.expect is not None

    @property
    def calls(self) -> ToolCalls:
        """The tool calls of the turn's agents."""
        return ToolCalls.sum_of(self.played.runs)

    @property
    def ends(self) -> bool:
        """Whether the user cannot continue, because a form was left without an answer or a strategy failed."""
        if self.played.is_direct:
            return self.played.end.status in NOT_WELL
        return self.played.end.status == "paused" and bool(self.failures)

    @property
    def report(self) -> JsonObject:
        """The turn as one JSON object, for programs."""
        run = self.played.own
        if run is None or self.model is None:
            found = flow_report(self.played)
        else:
            found = report(run, self.model, self.spending)
        if self.has_expectations:
            return {**found, "failed_expectations": list(self.failures)}
        return found


def case_turns(conversation: Conversation, host: ToolHost | None, turns: Sequence[TurnScript]) -> Iterator[CaseTurn]:
    """Play the turns, and yield each once it has ended. After a failed turn of a flow, the user continues.

    A strategy's turn without an expectation of its own is checked with the whole conversation.
    """
    case = conversation.case
    for number, said in enumerate(turns, start=1):
        played = conversation.play(said, host)
        place = f"turn {number}" + (f" ({said.query})" if said.query else "")
        checks: tuple[Check, ...] = ()
        if said.expect is not None or not played.is_direct:
            expected = said.expect or Expected()  # a turn without an expectation has to succeed
            checks = tuple(expected.checks(Observed.of_turns([played]), case.played.node))
        turn = CaseTurn(said, played, place, checks)
        models = list(conversation.models.counting)
        turn = replace(turn, remark=_remark(turn, conversation, models, len(turns) - number))
        if played.is_direct and models:
            turn = replace(turn, model=models[-1].description, spending=models[-1].spent())
        if turn.has_expectations and turn.failures:
            _write_failures(conversation.trace, turn)
        yield turn
        if turn.ends:
            return


def _write_failures(trace: Watcher | None, turn: CaseTurn) -> None:
    from devhost.trace.lines import TraceWriter  # noqa: PLC0415 - many classes, for a run that is traced

    if isinstance(trace, TraceWriter):
        trace.flow(FlowJudged(turn.failures))


def _remark(turn: CaseTurn, conversation: Conversation, models: Sequence[CountingModel], left: int) -> str:
    run = turn.played.own
    if run is None:
        return ""
    asked = run.error is None or run.asked.get("llm")  # otherwise the model is not the cause
    unsaid = turn.ends and left
    ends = ""
    if unsaid:
        ends = f"The conversation ends here, before {counted(left, 'further message')} of the script."
    said = [model.afterwards for model in models if asked]
    return " ".join(filter(None, (*said, conversation.memory.note, ends)))


def play(  # noqa: PLR0913 - options, by keyword
    case: Case,
    host: ToolHost | None,
    *,
    query: str | None = None,
    models: ModelOfNode | None = None,
    id: str = "",  # noqa: A002 - of the conversation
    trace: Watcher | None = None,
) -> Iterator[CaseTurn]:
    """Play a case, and yield each turn once it has ended. `observed_of` sums the turns up.

    `query` and `models` replace the script's question and the case's models. If a real model answers, only the first
    turn is played, because the later turns were written for the script's answers. `id` is a new id by default.
    """
    case = replace(case, models=models or case.models)
    return case_turns(Conversation(case, trace=trace, id=id), host, case.turns(query))


def observed_of(turns: Sequence[CaseTurn]) -> Observed:
    """Return the result of a conversation. A last turn that failed as expected is not an error."""
    seen = Observed.of_turns([turn.played for turn in turns])
    last = turns[-1]
    if last.has_expectations and not last.failures:
        return replace(seen, error=None, status="succeeded")
    return seen


def judged_whole(case: Case, expected: Expected | None, turns: Sequence[CaseTurn]) -> list[str]:
    """Return the failed expectations of a whole conversation. A strategy's conversation has to succeed by default."""
    if expected is None and case.played.kind == "flow":  # each of its turns has to succeed
        return []
    checks = (expected or Expected()).checks(observed_of(turns), case.played.node)
    return [check.sentence for check in checks if not check.passed]


def conversation_report(reports: Sequence[JsonObject]) -> JsonObject:
    """Return the last turn's report, which includes the reports of earlier turns, if any."""
    *earlier, last = reports
    if earlier:
        return {**last, "earlier_turns": earlier}
    return last
