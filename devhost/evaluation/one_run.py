"""One planned run with its judge. In: a `Planned`, a host, the models. Out: a `Result`."""

import uuid
from collections.abc import Callable
from typing import Protocol

from devhost.conversation.conversation import Conversation
from devhost.conversation.script import CountingModel, play
from devhost.evaluation.checks.check import Check
from devhost.evaluation.checks.checking import checks
from devhost.evaluation.checks.judge import judged
from devhost.evaluation.checks.observed import Observed
from devhost.evaluation.plan import Planned
from devhost.evaluation.results import Result
from devhost.host.host import Host
from devhost.models.backend import ModelBackend
from devhost.models.scripted.model import ScriptedModel
from devhost.models.scripted.turn import Turn
from devhost.protocol.wire import JsonObject


class Models(Protocol):
    """Which model answers, and which one judges."""

    def answering(self, planned: Planned, question: str, *, asked: int) -> CountingModel:
        """`asked`: how often the conversation had this question before."""
        ...

    def judging(self) -> ModelBackend | None:
        """None if the judge is scripted."""
        ...


def run_once(host: Host, planned: Planned, models: Models) -> Result:
    conversation = Conversation(planned.scenario, conversation_id=str(uuid.uuid4()), raw=False, strict=False)

    def choose(question: str, *, asked: int) -> CountingModel:
        return models.answering(planned, question, asked=asked)

    scripted = choose(planned.question, asked=0).description.scripted
    follow_ups = planned.scenario.follow_ups(planned.question) if scripted else ()
    turns = play(conversation, planned.question, follow_ups, choose)
    observed = Observed.of([turn.run for turn in turns(host, _ignore)])
    found = [*checks(planned.case.expected, observed), *_judgement(planned, observed, models.judging)]
    if planned.strict:
        found.append(Check("rules of Dify", "none is broken", ", ".join(observed.findings)))
    return Result(
        key=planned.key,
        case=planned.case.name,
        column=planned.column.name,
        repeat=planned.repeat,
        case_digest=planned.case_digest,
        observed=observed,
        checks=tuple(found),
    )


def _judgement(planned: Planned, observed: Observed, model: Callable[[], ModelBackend | None]) -> list[Check]:
    """A run that failed has no answer to judge."""
    expected = planned.case.expected.judge
    if expected is None or observed.error is not None:
        return []
    judge = model() or _scripted_judge(expected.turns or ())
    return [judged(judge, expected.rubric, planned.question, observed.text)]


def _scripted_judge(turns: tuple[Turn, ...]) -> ModelBackend:
    return ScriptedModel(turns, place="the case")


def _ignore(_message: JsonObject) -> None:
    pass
