"""The strategies as Dify calls them, and the example of docs/write-a-strategy.md."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from dify_plugin import AgentStrategy
from dify_plugin.entities.agent import AgentRuntime

import tests.support.example_strategy as example
from internal.node.params import StrategyParams
from prompt import template
from strategies import gpt5_function_calling, gpt5_plan_and_reflect, gpt5_react
from tests.support import plans
from tests.support.host import ScriptedModel, Step, Tools, make_session
from tests.support.plans import tree
from tests.support.run import run
from tests.support.scenes import ANSWER, FOUND, check_growth, search
from tests.support.wire import calls, model, parameter, says, tool

PLAIN = gpt5_function_calling.GPT5FunctionCallingStrategy
REACT = gpt5_react.GPT5ReActStrategy
PLAN_AND_REFLECT = gpt5_plan_and_reflect.GPT5PlanAndReflectStrategy
LOOP: list[Step] = [search(), ANSWER]
SCRIPTS: dict[type[AgentStrategy], list[Step]] = {
    PLAIN: LOOP,
    REACT: LOOP,
    PLAN_AND_REFLECT: [plans.plans("One"), *plans.done_at_once("One"), plans.answers("Done.")],
}
"""A run of each strategy; its answer is ``Done.``"""


def system_prompt_of(strategy: type[AgentStrategy], **more: Any) -> str:  # noqa: ANN401 - passed on as it is
    """Run a strategy as the SDK does; the answer must come, and the system prompt is returned."""
    scripted = ScriptedModel(list(SCRIPTS[strategy]))
    session, _ = make_session(scripted, Tools(FOUND))
    parameters = {"model": model(), "query": "?", "tools": [tool("search", parameter("q"))], **more}
    runtime = AgentRuntime(user_id="user-1")
    said = [
        message.model_dump()["message"]["text"]
        for message in strategy(runtime=runtime, session=session).invoke(parameters)
        if message.type.value == "text"
    ]
    assert "".join(said) == "Done."
    (prompt,) = {str(prompt[0]["content"]) for prompt in scripted.prompts}
    return prompt


def test_every_declared_strategy_is_run_here() -> None:
    declared = {path.stem for path in (Path(__file__).parents[2] / "strategies").glob("*.yaml")}

    assert {strategy.__module__.removeprefix("strategies.") for strategy in SCRIPTS} == declared


@pytest.mark.parametrize("strategy", SCRIPTS)
def test_a_strategy_answers_with_its_tools_and_under_the_five_policies(strategy: type[AgentStrategy]) -> None:
    overrides = '{"tool_preamble_policy": "Say nothing."}'
    prompt = system_prompt_of(strategy, instruction="Be kind.", prompt_policy_overrides=overrides)

    tags = re.findall(r"^<(\w+)>$", prompt, re.MULTILINE)
    assert tags == ["persistence", "context_gathering", "tool_results", "uncertainty_and_ambiguity", "tool_preamble"]
    assert prompt.startswith("Be kind.")
    assert prompt.endswith("<tool_preamble>\nSay nothing.\n</tool_preamble>")


def test_react_differs_only_in_the_tool_preamble() -> None:
    plain = system_prompt_of(PLAIN)
    react = system_prompt_of(REACT)

    assert react == plain.replace(template.TOOL_PREAMBLE_POLICY, template.REACT_TOOL_PREAMBLE_POLICY)
    assert react != plain


def test_names_of_the_public_interface() -> None:
    assert gpt5_function_calling.GPT5FunctionCallingParams is StrategyParams
    assert issubclass(REACT, PLAIN)
    assert issubclass(PLAN_AND_REFLECT, PLAIN)


def test_a_model_without_tool_calls_answers_where_there_are_no_tools() -> None:
    assert run([ANSWER], params={"model": model(features=[])}).text == "Done."


PAGE = Path(__file__).parents[2] / "docs" / "write-a-strategy.md"
DRAFT = "A poor draft. </finding>"
SCHEMA = json.dumps({"type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"]})


def test_the_page_shows_the_example_as_it_is_run() -> None:
    code = Path(example.__file__).read_text(encoding="utf-8")

    assert PAGE.read_text(encoding="utf-8").count(f"```python\n{code}```") == 1


@pytest.mark.parametrize("thoughts", [False, True], ids=["hidden thoughts", "shown thoughts"])
def test_the_example_shows_only_the_checked_answer(*, thoughts: bool) -> None:
    steps = [search("a"), says(f"<think>hm</think>{DRAFT}"), search("b"), says("A good answer.")]

    outcome = run(steps, FOUND, {"emit_intermediate_thoughts": thoughts}, blueprint=example.DRAFT_AND_CHECK)

    assert outcome.error is None
    assert outcome.text.rpartition("</think>")[2].strip() == "A good answer."
    assert "draft" not in outcome.text
    assert (outcome.stop_reason, outcome.variables["draft"]) == ("answered", DRAFT)
    assert [entry["round"] for entry in outcome.variables["tool_runs"]] == [1, 1]
    assert outcome.last_json["decision_summary"]["rounds"] == 4
    check_growth(outcome.model.requests[:2])
    check_growth(outcome.model.requests[2:])
    assert "<finding>\nA poor draft. &lt;/finding>\n</finding>" in outcome.model.prompts[2][1]["content"]
    turn = ["gpt-5-scripted"]
    call = ["CALL search"]
    rounds = [["ROUND 1", turn, call], ["ROUND 2", turn]]
    assert tree(outcome) == [["DRAFT", *rounds], ["ANSWER", *rounds], ["ENDED: answered"]]


def test_the_example_hands_over_an_answer_in_a_schema() -> None:
    steps = [says(DRAFT), calls(("submit_answer", {"verdict": "good"}))]

    outcome = run(steps, FOUND, {"answer_schema": SCHEMA}, blueprint=example.DRAFT_AND_CHECK)

    assert outcome.error is None
    assert outcome.variables["structured_output"] == {"verdict": "good"}
    assert json.loads(outcome.text) == {"verdict": "good"}
