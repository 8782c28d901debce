"""Whatever a model says and wherever it fails: nothing that needs an approval runs without one, and nothing twice."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from internal.agent import FUNCTION_CALLING, Blueprint
from internal.plan_and_reflect.strategy import PLAN_AND_REFLECT
from tests.support.host import Json, Step
from tests.support.run import Outcome, run
from tests.support.wire import calls, fails, replies, says

HANDLERS = {"order": replies("ordered"), "search": replies("found")}
VERDICT = ("submit_reflection", {"is_completed": True, "advice": ""})

turns = st.one_of(
    st.lists(st.sampled_from(["order", "order", "search", "broken", "submit_answer"]), min_size=1, max_size=3),
    st.sampled_from(["answer", "fail", "plan", "judge"]),
)
replies_of_user = st.sampled_from(["yes", "no, thanks", "", "all", "first", "none", "strange"])


@dataclass
class Conversation:
    """A chatflow: the state goes from run to run, unless the node failed."""

    blueprint: Blueprint[Any]
    state: str = ""
    pending: list[Json] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    """What was ordered, in all runs."""
    numbers: Any = field(default_factory=count)

    def step(self, turn: str | Sequence[str]) -> Step:
        """A turn of the model; each order is of something else."""
        if turn == "fail":
            return fails("InvokeBadRequestError")
        if turn == "plan":
            return calls(("submit_plan", {"subtasks": ["one", "two"]}))
        if turn == "judge":
            return calls(VERDICT)
        if isinstance(turn, str):
            return says("Done.")
        return calls(*((name if name != "broken" else "order", self._arguments(name)) for name in turn))

    def _arguments(self, name: str) -> Any:  # noqa: ANN401 - JSON, or what should have been
        return "{" if name == "broken" else {"q": str(next(self.numbers))}

    def approval(self, said: str) -> str:
        """What the user says to the calls that wait."""
        ids = [call["id"] for call in self.pending]
        match said:
            case "all":
                return json.dumps(dict.fromkeys(ids, True))
            case "first":
                return json.dumps(dict.fromkeys(ids[:1], True))
            case "none":
                return json.dumps(dict.fromkeys(ids, False))
            case "strange":
                return json.dumps(dict.fromkeys([*ids, "call_1_00000000"], "yes"))
        return said

    def turn(self, steps: Sequence[str | Sequence[str]], said: str) -> None:
        approval = self.approval(said)
        params = {
            "approval_required": "order",
            "state": self.state,
            "approval": approval,
            "query": "What now?",
            "maximum_iterations": 2,
            "maximum_attempts": 1,
        }
        script = [self.step(turn) for turn in steps]
        outcome = run(script, HANDLERS, params, blueprint=self.blueprint, expect_all_steps=False)
        ordered = [request["tool_parameters"]["q"] for request in outcome.tools.requests if request["tool"] == "order"]
        approved = {"yes": self.pending, "all": self.pending, "first": self.pending[:1]}.get(said, [])
        assert sorted(ordered) == sorted(call["arguments"]["q"] for call in approved)
        assert not (ordered and outcome.error)
        self.sent += ordered
        self._write_back(outcome)

    def _write_back(self, outcome: Outcome) -> None:
        """As a Variable Assigner behind the node does, if the node did not fail."""
        if outcome.error is None:
            self.state, self.pending = outcome.variables["state"], outcome.variables["pending_calls"]
            assert bool(self.pending) == (outcome.stop_reason == "approval_required")


@settings(max_examples=100)
@given(
    st.sampled_from([FUNCTION_CALLING, PLAN_AND_REFLECT]),
    st.lists(st.tuples(st.lists(turns, max_size=6), replies_of_user), min_size=2, max_size=4),
)
def test_only_what_was_approved_runs_and_it_runs_once(
    blueprint: Blueprint[Any], runs: list[tuple[list[str | list[str]], str]]
) -> None:
    conversation = Conversation(blueprint)
    for steps, said in runs:
        conversation.turn(steps, said)

    assert len(set(conversation.sent)) == len(conversation.sent)
