"""An update kills no waiting approval: states that older code put out go on, and so do those of today.

tests/fixtures/state/waiting has what the code of 2026-11-28 put out for the first run of each scene; 0.1.0 had no
state.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from internal.agent import FUNCTION_CALLING, Blueprint
from internal.plan_and_reflect import PLAN_AND_REFLECT
from tests.support.host import Json, Step, When
from tests.support.plans import answers, completed, done_at_once, incomplete, plans, works_on
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, search
from tests.support.strict_reader import READER
from tests.support.wire import MODEL, calls, json_message, model, parameter, replies, says, tool

STORED = Path(__file__).parent.parent / "fixtures" / "state" / "waiting"
MINUTES = "\n".join(f"Line {number} of the minutes." for number in range(60))
HANDLERS = {
    "search": replies("a shop", json_message({"items": [{"id": 7}]})),
    "read": replies(MINUTES),
    "order": replies("ordered"),
    "quote": replies("Quote A-17"),
}
TOOLS = [
    *(tool(name, parameter("q")) for name in ("search", "read", "quote")),
    tool(
        "order", parameter("q"), parameter("count", "number"), parameter("list", "array"), parameter("wrap", "boolean")
    ),
]
LAMP = ("order", '{ "q" : "lamp", "count": "2" }')
LAMP_SENT = {"q": "lamp", "count": 2}


@dataclass(frozen=True)
class Scene:
    """A run in which calls wait, and the next one after the user's yes."""

    first: Sequence[Step]
    after_yes: Sequence[Step]
    sent: Sequence[tuple[str, Json]]
    """What is sent to tools after a yes, in any order."""
    after_no: Sequence[Step] = (ANSWER,)
    params: Json = field(default_factory=dict)
    blueprint: Blueprint[Any] = FUNCTION_CALLING

    def play(self, steps: Sequence[Step], **more: object) -> Outcome:
        node = {"tools": TOOLS, "approval_required": "order", "query": "Buy a lamp.", **self.params}
        return run(steps, HANDLERS, {**node, **more}, blueprint=self.blueprint)

    def asked(self) -> Outcome:
        return self.play(self.first)

    def answered(self, state: str, approval: str) -> Outcome:
        steps = self.after_yes if approval == "yes" else self.after_no
        return self.play(steps, state=state, approval=approval, query=approval)


SCENES = {
    "a_call_alone": Scene([calls(LAMP, text="I order it.")], [ANSWER], [("order", LAMP_SENT)]),
    "some_have_run": Scene(
        [search("lamps"), calls(("search", {"q": "desks"}), LAMP, ("order", {"q": "desk", "wrap": "true"}))],
        [ANSWER],
        [("order", LAMP_SENT), ("order", {"q": "desk", "wrap": True})],
    ),
    "with_references": Scene(
        [calls(("read", {"q": "minutes"})), calls(("order", {"q": "result:r1", "list": ["result:r1", "x"]}))],
        [ANSWER],
        [("order", {"q": MINUTES, "list": [MINUTES, "x"]})],
    ),
    "beside_an_answer": Scene(
        [calls(("quote", {"q": "lamp"}), LAMP)],
        [],
        [("order", LAMP_SENT), ("quote", {"q": "lamp"})],
        params={"answer_tools": "quote"},
    ),
    "in_a_plan": Scene(
        [
            plans("lamp", "desk"),
            works_on("lamp", says("Hm.")),
            incomplete("lamp", "Order it."),
            When("Order it.", calls(LAMP)),
            *done_at_once("desk"),
        ],
        [completed("lamp"), answers(), When("ordered", says("A lamp is ordered."))],
        [("order", LAMP_SENT)],
        [completed("lamp"), answers(), When("no, thank you", says("No lamp."))],
        blueprint=PLAN_AND_REFLECT,
    ),
    "in_two_subtasks": Scene(
        [plans("lamp", "desk"), works_on("lamp", calls(LAMP)), works_on("desk", calls(("order", {"q": "desk"})))],
        [completed("lamp"), completed("desk"), answers(), *[When("ordered", says("Done."))] * 2],
        [("order", LAMP_SENT), ("order", {"q": "desk"})],
        [completed("lamp"), completed("desk"), answers(), *[When("no, thank you", says("No."))] * 2],
        blueprint=PLAN_AND_REFLECT,
    ),
}

each_scene = pytest.mark.parametrize("name", SCENES)
each_age = pytest.mark.parametrize("age", ["stored", "of today"])


def state_of(name: str, age: str) -> str:
    if age == "stored":
        READER.gave(model()["provider"], MODEL, ["call_1", "call_2", "call_3"])
        return (STORED / f"{name}.txt").read_text(encoding="utf-8").strip()
    return str(SCENES[name].asked().variables["state"])


def sent(outcome: Outcome) -> list[tuple[str, Json]]:
    requests = [(request["tool"], request["tool_parameters"]) for request in outcome.tools.requests]
    return sorted(requests, key=str)


@each_scene
@each_age
def test_after_a_yes_the_calls_that_waited_run_once_as_they_were_asked_for(name: str, age: str) -> None:
    scene = SCENES[name]

    outcome = scene.answered(state_of(name, age), "yes")
    again = scene.play([ANSWER], state=outcome.variables["state"], approval="yes", query="yes", tools=[])

    assert outcome.error is None
    assert (outcome.stop_reason, outcome.variables["pending_calls"]) == ("answered", [])
    assert sent(outcome) == sorted(scene.sent, key=str)
    assert sent(again) == []


@each_scene
@each_age
def test_after_a_no_none_of_them_runs(name: str, age: str) -> None:
    outcome = SCENES[name].answered(state_of(name, age), "no, thank you")

    assert outcome.error is None
    assert (outcome.stop_reason, outcome.variables["pending_calls"]) == ("answered", [])
    assert sent(outcome) == []


def test_a_state_is_stored_for_each_scene() -> None:
    assert {path.stem for path in STORED.glob("*.txt")} == set(SCENES)
