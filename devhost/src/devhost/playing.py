"""Plays a case's turns, of a strategy or a flow, each beside what it is expected to be."""

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
    said: TurnScript
    played: PlayedTurn
    place: str
    """Which turn it is, for people."""
    checks: tuple[Check, ...]
    remark: str = ""
    """About the models, and about the conversation if it ends too early."""
    model: ModelDescription | None = None
    """That of a strategy."""
    spending: JsonObject | None = None
    """What the provider of its model counted."""

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence for each expectation that failed: what was expected, what came, where."""
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
        """Whether the user cannot go on: a form was left without an answer, or a strategy failed."""
        if self.played.is_direct:
            return self.played.end.status in NOT_WELL
        return self.played.end.status == "paused" and bool(self.failures)

    @property
    def report(self) -> JsonObject:
        """As one JSON object, for programs."""
        run = self.played.own
        if run is None or self.model is None:
            found = flow_report(self.played)
        else:
            found = report(run, self.model, self.spending)
        if self.has_expectations:
            return {**found, "failed_expectations": list(self.failures)}
        return found


def case_turns(conversation: Conversation, host: ToolHost | None, turns: Sequence[TurnScript]) -> Iterator[CaseTurn]:
    """Each turn once it has ended. After a failed turn of a flow the user goes on.

    A strategy's turn that expects nothing itself is judged with the whole conversation.
    """
    case = conversation.case
    for number, said in enumerate(turns, start=1):
        played = conversation.play(said, host)
        place = f"turn {number}" + (f" ({said.query})" if said.query else "")
        checks: tuple[Check, ...] = ()
        if said.expect is not None or not played.is_direct:
            expected = said.expect or Expected()  # a turn that expects nothing has to succeed
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
    asked = run.error is None or run.asked.get("llm")  # else the model is not what went wrong
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
    """Each turn once it has ended; `observed_of` sums them up.

    `query` takes the place of the script's question. `models` answer in place of the case's; if the script does not
    answer, only the first turn is played, because what follows was written for its answers. `id`: by default a new one.
    """
    case = replace(case, models=models or case.models)
    return case_turns(Conversation(case, trace=trace, id=id), host, case.turns(query))


def observed_of(turns: Sequence[CaseTurn]) -> Observed:
    """What was observed in a conversation. A last turn that failed as expected is not an error."""
    seen = Observed.of_turns([turn.played for turn in turns])
    last = turns[-1]
    if last.has_expectations and not last.failures:
        return replace(seen, error=None, status="succeeded")
    return seen


def judged_whole(case: Case, expected: Expected | None, turns: Sequence[CaseTurn]) -> list[str]:
    """What failed of the expectations of a whole conversation. Without them, one with a strategy has to succeed."""
    if expected is None and case.played.kind == "flow":  # each of its turns has to
        return []
    checks = (expected or Expected()).checks(observed_of(turns), case.played.node)
    return [check.sentence for check in checks if not check.passed]


def conversation_report(reports: Sequence[JsonObject]) -> JsonObject:
    """The last turn's report, which of a conversation also has those before it."""
    *earlier, last = reports
    if earlier:
        return {**last, "earlier_turns": earlier}
    return last
