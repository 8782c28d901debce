"""What tests of plans share: turns that say which call of which subtask they answer, and ways to tell calls apart."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from gevent import Timeout

from internal.agent import FUNCTION_CALLING, Blueprint
from internal.clock import Clock
from internal.plan_and_reflect import PLAN_AND_REFLECT
from strategies.gpt5_react import GPT5ReActStrategy
from tests.support.clock import PATIENCE
from tests.support.host import Handler, Json, Step, When, text_of
from tests.support.run import Outcome, run
from tests.support.wire import calls, replies, says, text_message

LONG = "found " * 40
"""A tool result that is longer than the note that may replace it."""
FOUND = {"search": replies(LONG)}
ANSWER = "Here is all of it."


def plan_run(
    steps: Sequence[Step],
    handlers: Mapping[str, Handler] | None = None,
    params: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
) -> Outcome:
    """Run gpt5_plan_and_reflect on a script; a run that hangs fails instead."""
    with Timeout(2 * PATIENCE):
        return run(steps, handlers, params, blueprint=PLAN_AND_REFLECT, clock=clock)


def plans(*subtasks: str) -> list[Any]:
    return calls(("submit_plan", {"subtasks": list(subtasks)}))


def works_on(name: str, turn: Sequence[Any]) -> Step:
    """The first turn of a subtask."""
    return When(f"Subtask: {name}\n", turn)


def advised(advice: str, turn: Sequence[Any]) -> Step:
    """The first turn of a later attempt."""
    return When(f"Advice: {advice}", turn)


def judges(name: str, turn: Sequence[Any]) -> Step:
    """The first turn of a reflection."""
    return When(f"Judge subtask: {name}\n", turn)


def completed(name: str) -> Step:
    return judges(name, verdict(is_completed=True))


def incomplete(name: str, advice: str) -> Step:
    return judges(name, verdict(is_completed=False, advice=advice))


def verdict(*, is_completed: object, advice: object = "") -> list[Any]:
    return calls(("submit_reflection", {"is_completed": is_completed, "advice": advice}))


def answers(*texts: str) -> Step:
    """The last call of a run."""
    return When("<findings>", says(*(texts or (ANSWER,))))


def done_at_once(name: str) -> list[Step]:
    """A subtask that needs no tool and one attempt."""
    return [works_on(name, says(f"Answer to {name}.")), completed(name)]


def echo(request: Json) -> Iterator[Json]:
    """A tool that finds something for every question."""
    yield text_message(f"result for {request['tool_parameters']['q']}")


def looked_up(name: str) -> list[Step]:
    """A subtask with one tool round; its tool is ``echo``."""
    return [
        works_on(name, calls(("search", {"q": name}))),
        When(f"result for {name}", says(f"Answer to {name}.")),
        completed(name),
    ]


def opening(request: Json) -> str:
    """The user message that a conversation begins with."""
    return text_of(request["prompt_messages"][1])


def offered(request: Json) -> list[str]:
    return [tool["name"] for tool in request["tools"] or ()]


def of_subtask(outcome: Outcome, name: str) -> list[Json]:
    """The requests of a subtask's own transcript, in order."""
    return [request for request in outcome.model.requests if f"\nSubtask: {name}\n" in opening(request)]


def of_reflection(outcome: Outcome, name: str) -> list[Json]:
    return [request for request in outcome.model.requests if f"\nJudge subtask: {name}\n" in opening(request)]


def of_plan(outcome: Outcome) -> list[Json]:
    return [request for request in outcome.model.requests if offered(request) == ["submit_plan"]]


def of_answer(outcome: Outcome) -> list[Json]:
    return [request for request in outcome.model.requests if "<findings>" in opening(request)]


def subtask(outcome: Outcome, name: str) -> Json:
    """A subtask as the variable shows it."""
    return next(entry for entry in outcome.variables["subtasks"] if entry["name"] == name)


def found(name: str, answer: str, *, attempts: int = 1) -> Json:
    """A completed subtask as the variable shows it."""
    return {"name": name, "answer": answer, "completed": True, "attempts": attempts}


def tree(outcome: Outcome) -> list[Any]:
    """The log as nested lists of labels, by parent."""
    children: dict[str | None, list[Json]] = {}
    for log in outcome.logs.values():
        children.setdefault(log["parent_id"], []).append(log)

    def below(parent: str | None) -> list[Any]:
        return [[log["label"], *below(log["id"])] for log in children.get(parent, [])]

    return below(None)


def blocks(text: str) -> list[str]:
    """The thought blocks of a text, each of them closed and none inside another."""
    assert text.count("<think>") == text.count("</think>")
    found = re.findall(r"<think>\n(.*?)\n</think>", text, re.DOTALL)
    assert len(found) == text.count("<think>")
    assert not any("<think>" in block for block in found)
    return found


STRATEGIES: dict[str, tuple[Blueprint[Any], list[Any], list[Any]]] = {
    "function calling": (FUNCTION_CALLING, [], []),
    "react": (GPT5ReActStrategy.blueprint, [], []),
    "plan and reflect": (PLAN_AND_REFLECT, [plans("One")], [completed("One"), answers()]),
}
"""Each with the turns before and after those of one loop, which is the only subtask's where there is a plan."""
ALONE: dict[str, Blueprint[Any]] = {"function calling": FUNCTION_CALLING, "react": GPT5ReActStrategy.blueprint}
"""The strategies whose loop is the run."""
UP_TO_THE_ANSWER: dict[str, tuple[Blueprint[Any], list[Any]]] = {
    "function calling": (FUNCTION_CALLING, []),
    "react": (GPT5ReActStrategy.blueprint, []),
    "plan and reflect": (PLAN_AND_REFLECT, [plans("alpha"), *done_at_once("alpha")]),
}
"""Each strategy, and its turns before the answer."""
every_strategy = pytest.mark.parametrize("strategy", UP_TO_THE_ANSWER)
