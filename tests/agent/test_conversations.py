"""Whole conversations of each strategy, as files: what the model reads in each call, and what Dify gets.

A change in either shows as a diff of ``conversations/``. After one that is meant, ``make conversations`` writes the
files again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any

import pytest
import yaml

from internal.agent import Blueprint
from internal.memory.state import decode
from strategies.gpt5_function_calling import GPT5FunctionCallingStrategy
from strategies.gpt5_plan_and_reflect import GPT5PlanAndReflectStrategy
from strategies.gpt5_react import GPT5ReActStrategy
from tests.support.clock import FakeTime
from tests.support.host import Handler, Json, Step, When
from tests.support.plans import advised, completed, incomplete, plans, works_on
from tests.support.run import Outcome, run
from tests.support.wire import breaks, calls, replies, says

FOLDER = Path(__file__).parent / "conversations"


@dataclass(frozen=True)
class Conversation:
    blueprint: Blueprint[Any]
    steps: Sequence[Step]
    handlers: Mapping[str, Handler]
    params: Json = field(default_factory=dict)
    before: str | None = None
    """The conversation whose state this one goes on from."""


def echo(request: Json) -> Iterator[Json]:
    return iter(replies(f"The manual about {request['tool_parameters']['q']}.")(request))


CONVERSATIONS = {
    "function_calling": Conversation(
        GPT5FunctionCallingStrategy.blueprint,
        [
            calls(("search", {"q": "opening hours"}), ("weather", {"q": "Kyoto"}), text="I look both up."),
            says("The shop opens at nine [1]. ", "The weather could not be found out."),
        ],
        {"search": replies("Open from 9 to 17."), "weather": breaks("503 service unavailable")},
        {
            "instruction": "Answer for our customers.",
            "query": "When do you open, and is it raining?",
            "context": [{"content": "The shop opens at nine.", "title": "Hours", "metadata": {"document_id": "d1"}}],
            "emit_intermediate_thoughts": True,
            "parallel_tool_calls": 1,
        },
    ),
    "function_calling_reviewed": Conversation(
        GPT5FunctionCallingStrategy.blueprint,
        [
            calls(("search", {"q": "price"})),
            says("It costs 40 euros."),
            calls(("submit_review", {"passes": False, "problems": ["The price has no source."]})),
            calls(("search", {"q": "price list"})),
            says("It costs 40 euros, says the price list."),
            calls(("submit_review", {"passes": True, "problems": []})),
        ],
        {"search": echo},
        {"query": "What does it cost?", "answer_criteria": "A source for every figure; at most 20 words."},
    ),
    "function_calling_asked": Conversation(
        GPT5FunctionCallingStrategy.blueprint,
        [
            calls(("search", {"q": "lamp"})),
            calls(("search", {"q": "desk"}), ("order", {"q": "lamp"}), text="I order it."),
        ],
        {"search": echo, "order": replies("Order 4711 was placed.")},
        {"query": "Order the lamp of the manual.", "approval_required": "order"},
    ),
    "function_calling_approved": Conversation(
        GPT5FunctionCallingStrategy.blueprint,
        [says("The lamp is on its way: order 4711.")],
        {"search": echo, "order": replies("Order 4711 was placed.")},
        {"query": "yes", "approval": "yes", "approval_required": "order"},
        before="function_calling_asked",
    ),
    "react": Conversation(
        GPT5ReActStrategy.blueprint,
        [
            calls(("search", {"q": "backup", "page": 2}), text="<think>Page two, then.</think>I search the manual."),
            calls(("search", {"q": "backup"})),
            says("Backups run at night."),
        ],
        {"search": echo},
        {"query": "When do backups run?", "maximum_iterations": 2, "prompt_policy_overrides": "Be brief."},
    ),
    "plan_and_reflect": Conversation(
        GPT5PlanAndReflectStrategy.blueprint,
        [
            plans("rice"),  # one subtask: the order of the calls of two is not fixed
            works_on("rice", says("Somewhere in the north.")),
            incomplete("rice", "Look it up."),
            advised("Look it up.", calls(("search", {"q": "rice"}))),
            When("The manual about rice", says("Rice grows in Niigata.")),
            completed("rice"),
            When("<findings>", says("Rice grows in Niigata.")),
        ],
        {"search": echo},
        {"query": "Where does rice grow?", "emit_intermediate_thoughts": True},
    ),
}


def held(conversation: Conversation, time: FakeTime) -> Outcome:
    before = held(CONVERSATIONS[conversation.before], time) if conversation.before else None
    outcome = run(
        conversation.steps,
        conversation.handlers,
        {**conversation.params, **({"state": before.variables["state"]} if before else {})},
        blueprint=conversation.blueprint,
        clock=time.clock,
    )
    assert outcome.error is None
    return outcome


def prompts(outcome: Outcome) -> list[Json]:
    """Each model call; messages with which an earlier call begins too are not shown again."""
    shown: list[Json] = []
    for number, (request, prompt) in enumerate(zip(outcome.model.requests, outcome.model.prompts, strict=True)):
        known = [common_messages(prompt, earlier) for earlier in outcome.model.prompts[:number]]
        most = max(known, default=0)
        begins = {"begins_with": f"messages 1-{most} of call {known.index(most) + 1}"} if most else {}
        had = [earlier["call"] for earlier in shown if earlier["tools"] == request["tools"]]
        tools = {"tools": f"those of call {had[0]}" if had else request["tools"]}
        new = [without_nulls(message) for message in prompt[most:]]
        shown.append({"call": number + 1, **begins, "messages": new, **tools})
    return shown


def common_messages(prompt: Sequence[Json], earlier: Sequence[Json]) -> int:
    """How many messages both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(prompt, earlier, strict=False)))


def messages(outcome: Outcome) -> list[Json]:
    """Each message; texts that follow each other are one, however they were cut."""
    shown: list[Json] = []
    for kind, group in groupby(outcome.messages, lambda message: str(message["type"])):
        bodies = [without_nulls(message["message"]) for message in group]
        if kind == "text":
            bodies = [{"text": "".join(body["text"] for body in bodies)}]
        if kind == "variable":
            bodies = [with_readable_state(body) for body in bodies]
        shown += [{"type": kind, **without_run(body)} for body in bodies]
    return with_numbered_requests(shown)


def with_numbered_requests(shown: list[Json]) -> list[Json]:
    """The random ids of requests, each as its number in the run."""
    numbers: dict[str, int] = {}
    for body in shown:
        if ids := body.get("data", {}).get("request_ids"):
            body["data"]["request_ids"] = [numbers.setdefault(each, len(numbers) + 1) for each in ids]
    return shown


def with_readable_state(body: Json) -> Json:
    """What a state holds in place of its text, which is another one with another version of zlib."""
    state = decode(body["variable_value"]) if body["variable_name"] == "state" else None
    if state:
        return {**body, "variable_value": state.model_dump(mode="json", exclude_unset=True)}
    return body


def without_nulls(body: Json) -> Json:
    return {key: value for key, value in body.items() if value is not None}


def without_run(body: Json) -> Json:
    """Log ids begin with a random one of the run."""
    return {key: value.partition("-")[2] if key in {"id", "parent_id"} else value for key, value in body.items()}


class _Dumper(yaml.SafeDumper):
    """Writes a text of several lines as it is read."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - as the base class has it
        return True


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _write_text)


@pytest.mark.parametrize("shown", [prompts, messages], ids=["prompts", "messages"])
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_is_the_recorded_one(
    name: str, shown: Callable[[Outcome], list[Json]], time: FakeTime, request: pytest.FixtureRequest
) -> None:
    entries = shown(held(CONVERSATIONS[name], time))

    written = yaml.dump(entries, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=120)
    file = FOLDER / f"{name}.{shown.__name__}.yaml"
    if request.config.getoption("write_conversations"):
        file.write_text(written, encoding="utf-8")
    assert written == file.read_text(encoding="utf-8")
