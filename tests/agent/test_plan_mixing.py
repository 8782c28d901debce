"""Four subtasks of three attempts each, in any order of events: nothing of one reaches the transcript of another."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import gevent
from hypothesis import given, settings
from hypothesis import strategies as st

from prompt import template
from tests.agent.plans import (
    advised,
    answers,
    completed,
    incomplete,
    of_answer,
    of_reflection,
    of_subtask,
    opening,
    plan_run,
    plans,
    works_on,
)
from tests.agent.scenes import check_prompt
from tests.support.host import Json, Step, When
from tests.support.run import Outcome
from tests.support.wire import calls, says, text_message

NAMES = ("alpha", "beta", "gamma", "delta")
ATTEMPTS = 3
NEVER_DONE = "delta"


@dataclass(frozen=True)
class Turns:
    """Gives way to the others a while before each step, as the schedule says."""

    schedule: Iterator[int]

    def wait(self) -> None:
        for _ in range(next(self.schedule)):
            gevent.sleep(0)

    def before(self, turn: Sequence[Any]) -> list[Any]:
        return [self.wait, *turn]

    def tool(self, request: Json) -> Iterator[Json]:
        self.wait()
        yield text_message(f"RESULT {request['tool_parameters']['q']}. " + "." * 100)


def attempt(name: str, number: int, turns: Turns) -> list[Step]:
    """Two calls side by side, one more, an answer, and a judgement."""
    key = f"{name}{number}"
    both = turns.before(calls(("search", {"q": f"{key}a"}), ("search", {"q": f"{key}b"})))
    begin = works_on(name, both) if number == 1 else advised(f"ADVICE {name}{number - 1}", both)
    done = number == ATTEMPTS and name != NEVER_DONE
    return [
        begin,
        When(f"RESULT {key}b", turns.before(calls(("search", {"q": f"{key}c"})))),
        When(f"RESULT {key}c", turns.before(says(f"ANSWER {key}"))),
        completed(name) if done else incomplete(name, f"ADVICE {key}"),
    ]


def run_all(schedule: list[int]) -> Outcome:
    turns = Turns(cycle(schedule))
    steps = [step for number in range(1, ATTEMPTS + 1) for name in NAMES for step in attempt(name, number, turns)]
    return plan_run([plans(*NAMES), *steps, answers()], {"search": turns.tool}, {"parallel_tool_calls": 5})


def marks(messages: object) -> set[str]:
    """The names of all subtasks whose calls, results, answers or advice stand in these messages."""
    return set(re.findall(rf"\b({'|'.join(NAMES)})\d", json.dumps(messages)))


@settings(max_examples=settings().max_examples // 3)  # each is a run of some ninety calls
@given(st.lists(st.integers(0, 6), min_size=1, max_size=40))
def test_nothing_is_mixed_between_the_transcripts_of_subtasks(schedule: list[int]) -> None:
    outcome = run_all(schedule)

    assert outcome.error is None
    assert len(outcome.tools.requests) == len(NAMES) * ATTEMPTS * 3
    for name in NAMES:
        mine, judged = of_subtask(outcome, name), of_reflection(outcome, name)
        assert (len(mine), len(judged)) == (3 * ATTEMPTS, ATTEMPTS)
        for request in (*mine, *judged):
            check_prompt(request["prompt_messages"])
            assert marks(request["prompt_messages"]) == ({name} if request is not mine[0] else set())
        assert in_order(mine[-1]["prompt_messages"], name)


def in_order(prompt: Sequence[Json], name: str) -> bool:
    """Every call of the subtask, in its order, each followed by its own result or the note that replaced it."""
    made = [call["function"] for message in prompt for call in message.get("tool_calls") or ()]
    asked = [json.loads(call["arguments"])["q"] for call in made]
    assert asked == [f"{name}{number}{letter}" for number in range(1, ATTEMPTS + 1) for letter in "abc"]
    results = [message["content"] for message in prompt if message["role"] == "tool"]
    kept = [f"RESULT {q}." for q in asked[-3:]]
    assert results[:-3] == [template.ELIDED_TOOL_RESULT] * (3 * ATTEMPTS - 3)
    return all(result.startswith(beginning) for result, beginning in zip(results[-3:], kept, strict=True))


def test_each_finding_belongs_to_its_subtask() -> None:
    outcome = run_all([0, 3, 1, 5])

    for entry in outcome.variables["subtasks"]:
        assert f"ANSWER {entry['name']}{ATTEMPTS}" in entry["answer"]
        assert (entry["attempts"], entry["completed"]) == (ATTEMPTS, entry["name"] != NEVER_DONE)
    found = r'<finding subtask="(\w+)".*?>\n(.*?)\n</finding>'
    findings = re.findall(found, opening(of_answer(outcome)[0]), re.DOTALL)
    assert [name for name, _ in findings] == list(NAMES)
    assert all(marks(answer) == {name} for name, answer in findings)
