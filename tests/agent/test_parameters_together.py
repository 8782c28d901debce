"""All parameters of a run together, in any combination, with a model that says anything: what holds in every run."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import jsonschema_rs
import yaml
from gevent import Timeout
from hypothesis import given, settings
from hypothesis import strategies as st

from internal.agent import FUNCTION_CALLING, Blueprint
from internal.errors import StopReason
from internal.memory.state import decode
from internal.plan_and_reflect import PLAN_AND_REFLECT
from strategies.gpt5_react import GPT5ReActStrategy
from tests.support.clock import PATIENCE, FakeTime
from tests.support.host import CallFails, Json, ScriptedModel, Step
from tests.support.node import KNOWN_TO_DIFY
from tests.support.run import Outcome, run
from tests.support.scenes import CITY, check_growth, check_prompt
from tests.support.wire import USAGE, calls, fails, parameter, says, text_message, tool

SECRET = "hunter2-hunter2"
FAILURES = ["InvokeRateLimitError", "InvokeBadRequestError", "InvokeAuthorizationError", "InvokeConnectionError"]


ARGUMENTS: Mapping[str, Sequence[Any]] = {
    "submit_plan": [{"subtasks": ["alpha"]}, {"subtasks": ["alpha", "beta"]}, {"subtasks": []}],
    "submit_reflection": [{"is_completed": True, "advice": ""}, {"is_completed": False, "advice": "Look again."}],
    "submit_review": [{"passes": True, "problems": []}, {"passes": False, "problems": ["</draft> is long"]}],
    "submit_answer": [{"city": "Rome"}, {"city": 5}],
    "read_skill": [{"name": "alpha"}, {"name": "beta"}, {"name": "gamma"}],
    "find_tools": [{"query": "order"}, {"query": "?"}, {}],
    "read_result": [{"id": "r1", "offset": 900}, {"id": "r2", "find": "ALPHA"}, {"id": "r9"}],
}


SKILLS = "".join(f"---\nname: {name}\n---\n{name} </skills> {SECRET}\n" for name in ("alpha", "beta"))
QUESTIONS: Sequence[Any] = [{"q": "long"}, {"q": "short"}, {"q": "fail"}, "{"]


@dataclass
class AnyModel(ScriptedModel):
    """Says anything, and calls any tool that it is offered."""

    steps: Sequence[Step] = ()
    random: Random = field(default_factory=Random)
    failing: float = 0.0
    reported: int = 0
    """Tokens."""

    def _take_turn(self, last_message: Json) -> list[Any]:  # noqa: ARG002 - it says anything
        random = self.random
        if random.random() < self.failing:
            return fails(random.choice(FAILURES))
        tokens = random.randint(1, 300)
        usage = random.choice([None, {**USAGE, "prompt_tokens": tokens, "total_tokens": tokens + 5}])
        self.reported += usage["total_tokens"] if usage else 0
        offered = [described["name"] for described in self.requests[-1]["tools"] or ()]
        if not offered or random.random() < 0.3:
            words = random.choice(["", "<think>Hm.</think>", "Done [1].", "<finding> 1.000 </draft>"])
            return says(words, usage=usage, finish_reason=random.choice(["stop", "stop", "stop", "length"]))
        names = [random.choice([*offered, *offered, *offered, "nope"]) for _ in range(random.randint(1, 3))]
        return calls(*((name, random.choice(ARGUMENTS.get(name, QUESTIONS))) for name in names), usage=usage)


STRATEGIES: list[Blueprint[Any]] = [FUNCTION_CALLING, GPT5ReActStrategy.blueprint, PLAN_AND_REFLECT]


def answer(request: Json) -> Iterator[Json]:
    asked = request["tool_parameters"]["q"]
    if asked == "fail":
        raise CallFails(f"kaboom {SECRET}")
    yield text_message(f"alpha </results> {SECRET} " * (100 if asked == "long" else 1))


def sometimes(*values: object) -> st.SearchStrategy[Any]:
    return st.sampled_from([None, *values])


parameter_values = st.fixed_dictionaries(
    {
        "query": st.sampled_from(["What?", f"{SECRET}?"]),
        "answer_schema": sometimes(json.dumps(CITY)),
        "answer_criteria": sometimes(f"Short </criteria> {SECRET}"),
        "approval_required": sometimes("search", "*"),
        "maximum_iterations": sometimes(1, 3),
        "maximum_total_tokens": sometimes(1, 500, 2_000),
        "maximum_tool_calls": sometimes(1, 2, 5),
        "emit_intermediate_thoughts": sometimes("true"),
        "tools_in_prompt": sometimes(1),
        "skills": sometimes(SKILLS),
        "tool_result_limit": st.just(1_000),
        "fallback_model": sometimes("author/plugin/provider/second"),
        "extra_outputs": sometimes("state", "tool_results, thoughts", "state, tool_results, thoughts"),
    }
)


@cache
def declared_variables(strategy: str) -> jsonschema_rs.Validator:
    """What the picker of the next node shows."""
    declaration = yaml.safe_load((Path("strategies") / f"{strategy}.yaml").read_text(encoding="utf-8"))
    return jsonschema_rs.validator_for({**declaration["output_schema"], "additionalProperties": False})


MAY_BE_NULL = {"document_id", "score", "passed", "arguments", "structured_output"}


def without_nulls(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: without_nulls(item) for key, item in value.items() if item is not None or key not in MAY_BE_NULL}


def check_variables(outcome: Outcome, strategy: Blueprint[Any], params: Json) -> None:
    variables = outcome.variables
    extra = params["extra_outputs"] or ""
    declared_variables(strategy.name).validate(without_nulls(variables))
    waits = params["approval_required"] is not None
    assert outcome.stop_reason in set(StopReason)
    assert ("state" in variables) == (waits or "state" in extra)
    assert ("pending_calls" in variables) == waits
    assert bool(variables.get("pending_calls")) == (outcome.stop_reason == StopReason.APPROVAL_REQUIRED)
    assert ("review" in variables) == (params["answer_criteria"] is not None)
    assert ("thoughts" in variables, "tool_results" in variables) == ("thoughts" in extra, "tool_results" in extra)
    if outcome.stop_reason != StopReason.ANSWERED and "review" in variables:
        assert variables["review"]["passed"] is None
    if outcome.stop_reason == StopReason.APPROVAL_REQUIRED:
        assert variables.get("structured_output") is None
    if "tool_results" in variables:
        named = [[(run["tool"], run["status"]) for run in variables[name]] for name in ("tool_results", "tool_runs")]
        assert named[0] == named[1]
    if strategy is not PLAN_AND_REFLECT and (state := decode(variables.get("state", ""))):
        assert not {"read_result", "find_tools", "read_skill"} & set(re.findall(r"\w+", state.model_dump_json()))


@settings(max_examples=60)
@given(st.sampled_from(STRATEGIES), parameter_values, st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 0.4]))
def test_any_parameters_together_keep_the_promises_of_each(
    strategy: Blueprint[Any], params: Json, seed: int, failing: float
) -> None:
    key = parameter("key", "secret-input", form="form")
    offered = [tool(name, parameter("q"), key, runtime_parameters={"key": SECRET}) for name in ("search", "order")]
    model = AnyModel(random=Random(seed), failing=failing)  # noqa: S311 - it answers in greenlets, where nothing can be drawn

    with FakeTime().governed() as time, Timeout(PATIENCE):
        given_params = {**params, "tools": offered, "maximum_attempts": 2}
        handlers = {"search": answer, "order": answer}
        outcome = run(model, handlers, given_params, blueprint=strategy, clock=time.clock, expect_all_steps=False)

    assert "start" not in {log["status"] for log in outcome.logs.values()}
    assert SECRET not in json.dumps(outcome.messages)
    assert len(outcome.tools.requests) <= (params["maximum_tool_calls"] or len(outcome.tools.requests))
    for request in model.requests:
        assert SECRET not in json.dumps(request["prompt_messages"])
        check_prompt(request["prompt_messages"])
    if strategy is not PLAN_AND_REFLECT and not params["answer_criteria"]:
        check_growth(model.requests)
    ran = {request["tool"] for request in outcome.tools.requests}
    assert not ran & {"search": {"search"}, "*": {"search", "order"}}.get(params["approval_required"] or "", set())
    if outcome.error is None:
        check_variables(outcome, strategy, params)
        assert outcome.last_json["execution_metadata"]["total_tokens"] == model.reported
    else:
        assert type(outcome.error).__name__ in KNOWN_TO_DIFY
