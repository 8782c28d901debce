"""A script's conversation: its question, and what its user says to the answers, until a turn fails.

In: a question, what follows it in the script, a way to choose a model. Out: each turn as it ends.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from devhost.conversation.conversation import Conversation
from devhost.errors import ParameterError
from devhost.host.host import Host, OnMessage
from devhost.models.backend import ModelBackend
from devhost.models.scripted.file import FollowUp
from devhost.models.scripted.script import gist
from devhost.node.outputs.report import report
from devhost.node.outputs.run import Run
from devhost.protocol.wire import JsonObject


class CountingModel(ModelBackend, Protocol):
    @property
    def afterwards(self) -> str:
        """A sentence after the run; often empty."""
        ...

    def spent(self) -> JsonObject | None:
        """The tokens that a provider counted."""
        ...


class ChooseModel[M](Protocol):
    def __call__(self, question: str, *, asked: int) -> M:
        """`asked`: how often the conversation had this question before, in any spelling."""
        ...


def refuse_alone(then: Sequence[object]) -> None:
    """ParameterError if --alone has nothing to leave out; `then`: what the script's user says after its question."""
    if not then:
        raise ParameterError("--alone: the script has no `then`, so nothing follows its question: leave --alone out")


@dataclass(frozen=True)
class Ended:
    run: Run
    remark: str
    """About the model, and about the conversation if it ends too early."""
    report: JsonObject
    next_question: str | None
    """None if the conversation is over."""


def play(
    conversation: Conversation,
    question: str,
    follow_ups: Sequence[FollowUp],
    choose_model: ChooseModel[CountingModel],
) -> Callable[[Host, OnMessage], Iterator[Ended]]:
    """A function, because the models are chosen, and mistakes found, before a host starts."""
    asked: Counter[str] = Counter()
    said: list[tuple[str, str | None, CountingModel]] = []
    for query, approval in [(question, None), *((each.query, each.approval) for each in follow_ups)]:
        said.append((query, approval, choose_model(query, asked=asked[gist(query)])))
        asked[gist(query)] += 1

    def turns(host: Host, on_message: OnMessage) -> Iterator[Ended]:
        for number, (query, approval, model) in enumerate(said, start=1):
            run = conversation.ask(host, query, model, approval=approval, on_message=on_message)
            left = said[number:]
            remark = " ".join(filter(None, (_of_model(model, run), conversation.note, _unsaid(run, len(left)))))
            following = left[0][0] if left and run.error is None else None
            yield Ended(run, remark, report(run, model.description, model.spent()), following)
            if run.error is not None:
                return

    return turns


def _of_model(model: CountingModel, run: Run) -> str:
    """Nothing if the run failed before it asked the model: the model is then not what went wrong."""
    return "" if run.error is not None and not run.asked.get("llm") else model.afterwards


def _unsaid(run: Run, left: int) -> str:
    return f"The conversation ends here; of the script's messages, {left} were not said." if run.error and left else ""


def conversation_report(reports: Sequence[JsonObject]) -> JsonObject:
    """The last turn's report, which of a conversation also has those before it."""
    *earlier, last = reports
    return {**last, "earlier_turns": earlier} if earlier else last
