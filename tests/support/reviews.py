"""Drafts, judgements and rewrites as the turns of a run, and what came of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from internal.clock import Clock
from tests.support.clock import FakeTime
from tests.support.host import Handler, Json
from tests.support.plans import UP_TO_THE_ANSWER, offered
from tests.support.run import Outcome, run
from tests.support.scenes import (
    FOUND,
)
from tests.support.wire import USAGE, calls

CRITERIA = "A source for every figure; at most <draft> 200 words."


TURN = USAGE["total_tokens"]


def image() -> Json:
    return {"type": "image", "format": "png", "url": "https://a.test/1.png", "mime_type": "image/png"}


def submits(city: str) -> list[Any]:
    return calls(("submit_answer", {"city": city}))


def reviewed(
    *steps: Any,  # noqa: ANN401 - turns
    strategy: str = "function calling",
    handlers: Mapping[str, Handler] | None = None,
    clock: Clock | None = None,
    environment: Mapping[str, str] | None = None,
    **params: object,
) -> Outcome:
    """Run a strategy up to its answer, for which these are the turns."""
    blueprint, before = UP_TO_THE_ANSWER[strategy]
    given = {"answer_criteria": CRITERIA, **params}
    tools = FOUND if handlers is None else handlers
    return run([*before, *steps], tools, given, blueprint=blueprint, clock=clock, environment=environment)


def judged(outcome: Outcome) -> list[str]:
    """What the judge was asked, each time."""
    asked = [request for request in outcome.model.requests if offered(request) == ["submit_review"]]
    return [request["prompt_messages"][-1]["content"] for request in asked]


def answered(outcome: Outcome) -> list[Json]:
    """The requests of the conversation in which the answer was written."""
    others = [request for request in outcome.model.requests if offered(request) != ["submit_review"]]
    opening = others[-1]["prompt_messages"][:2]
    return [request for request in others if request["prompt_messages"][:2] == opening]


def review(outcome: Outcome) -> tuple[bool | None, list[str], int]:
    """The variable ``review``: passed, problems, revisions."""
    value = outcome.variables["review"]
    assert set(value) == {"passed", "problems", "revisions"}
    return value["passed"], value["problems"], value["revisions"]


def is_unjudged(outcome: Outcome) -> bool:
    return judged(outcome) == [] and review(outcome) == (None, [], 0)


def positions(outcome: Outcome, kind: str, within: str) -> list[int]:
    """Where messages of a type stand that contain a text."""
    found = enumerate(outcome.messages)
    return [at for at, message in found if message["type"] == kind and within in json.dumps(message)]


def results_of(asked: str) -> list[str]:
    return [part.partition("\n</result>")[0] for part in asked.split("<result>\n")[1:]]


@dataclass(frozen=True)
class Course:
    """Drafts and judgements, and how they end."""

    steps: Sequence[Any]
    text: str
    review: tuple[bool | None, list[str], int] = (None, [], 0)
    """By default nothing was judged."""
    reason: str = "answered"
    params: Mapping[str, Any] = field(default_factory=dict)
    turns: int | None = None
    """After which the tokens of the run are used up."""
    streams: bool = False

    def check(self, strategy: str, time: FakeTime) -> Outcome:
        spent = {"maximum_total_tokens": (len(UP_TO_THE_ANSWER[strategy][1]) + self.turns) * TURN} if self.turns else {}
        outcome = reviewed(*self.steps, strategy=strategy, clock=time.clock, **self.params, **spent)
        assert (outcome.error, outcome.text, outcome.stop_reason) == (None, self.text, self.reason)
        assert review(outcome) == self.review
        assert not self.streams or len(outcome.bodies("text")) == 2
        return outcome
