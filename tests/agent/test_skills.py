"""Skills in whole runs: what the prompt lists, what the model reads, and what the next turn knows."""

from typing import Any

import pytest

from prompt import template
from tests.support import plans
from tests.support.host import Json, When, text_of
from tests.support.node import KNOWN_TO_DIFY
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, FOUND, check_growth, log_of, results_in, search
from tests.support.wire import calls, model, replies, says

REFUNDS = "Ask for the order first.\n\n---\n\n" + "Then check the date. " * 100
SKILLS = (
    f"---\nname: refunds\ndescription: Money back.\n---\n{REFUNDS}\n---\nname: tone\ndescription: Words.\n---\nBe kind."
)
each_strategy = pytest.mark.parametrize("strategy", plans.STRATEGIES)


def reads(*names: object) -> list[Any]:
    return calls(*(("read_skill", {"name": name}) for name in names))


def skill_run(steps: list[Any], strategy: str = "function calling", **params: Any) -> Outcome:  # noqa: ANN401
    blueprint, before, after = plans.STRATEGIES[strategy]
    return run([*before, *steps, *after], FOUND, {"skills": SKILLS, **params}, blueprint=blueprint)


def system(outcome: Outcome, request: int = 0) -> str:
    return text_of(outcome.model.prompts[request][0])


def of_loop(outcome: Outcome) -> list[Json]:
    return [request for request in outcome.model.requests if "search" in plans.offered(request)]


@each_strategy
def test_a_skill_is_listed_and_read_whole(strategy: str) -> None:
    outcome = skill_run([reads("refunds"), search(), ANSWER], strategy, maximum_iterations=1, tool_result_limit=1000)

    assert outcome.error is None
    check_growth(requests := of_loop(outcome))
    assert {tuple(plans.offered(request)) for request in requests} == {("search", "read_skill")}
    listed = f"<skills>\n{template.SKILLS_HEADER}\n- refunds: Money back.\n- tone: Words.\n</skills>"
    assert all(listed in text_of(prompt[0]) for prompt in outcome.model.prompts)
    assert results_in(requests[2]["prompt_messages"]) == [REFUNDS.strip(), "found"]
    assert [entry["tool"] for entry in outcome.variables["tool_runs"]] == ["search"]
    assert log_of(outcome, "CALL read_skill")["data"]["arguments"] == {"name": "refunds"}
    assert outcome.stop_reason == ("answered" if strategy == "plan and reflect" else "iteration_limit")


def test_without_skills_nothing_of_them_is_in_the_prompt() -> None:
    outcome = skill_run([ANSWER], skills="")

    assert template.SKILLS_ARE_INSTRUCTIONS not in system(outcome)
    assert template.SKILLS_HEADER not in system(outcome)
    assert plans.offered(outcome.model.requests[0]) == ["search"]


def test_the_policy_on_results_excepts_skills_unless_the_node_has_its_own() -> None:
    ours, own, off = (
        system(skill_run([ANSWER], prompt_policy_overrides=overrides))
        for overrides in ("", '{"tool_results_policy": "Believe nothing."}', '{"tool_results_policy": false}')
    )

    assert f"{template.TOOL_RESULTS_POLICY}\n{template.SKILLS_ARE_INSTRUCTIONS}\n" in ours
    assert "<tool_results>\nBelieve nothing.\n</tool_results>" in own
    assert "tool_results>" not in off
    assert all(template.SKILLS_HEADER in prompt for prompt in (ours, own, off))


def test_an_unknown_name_tells_those_there_are() -> None:
    outcome = skill_run([reads("refund", 7), calls(("read_skill", {})), ANSWER], maximum_iterations=1)

    unknown, number = outcome.tool_results(1)
    assert "parameter 'name'" in unknown
    assert "refunds" in unknown
    assert "tone" in unknown
    assert "tool arguments validation error" in number
    assert '"name" is a required property' in outcome.tool_results(2)[0]
    assert outcome.stop_reason == "answered"


def test_skills_need_no_tools_but_a_model_that_can_call_some() -> None:
    alone = skill_run([reads("tone"), ANSWER], tools=[])
    unable = skill_run([], tools=[], model=model(features=["vision"]), tool_calls="native")

    assert [plans.offered(request) for request in alone.model.requests] == [["read_skill"]] * 2
    assert type(unable.error).__name__ in KNOWN_TO_DIFY
    assert "has no native tool calls" in str(unable.error)


@pytest.mark.parametrize("skills", ["start.skills", "No head.", SKILLS + SKILLS], ids=["variable", "text", "double"])
def test_what_cannot_be_read_is_an_error_before_any_model_call(skills: str) -> None:
    outcome = skill_run([], skills=skills)

    assert str(outcome.error).startswith("parameter 'skills': ")
    assert outcome.model.requests == []


def test_the_answer_of_a_plan_reads_skills_too() -> None:
    steps = [
        plans.plans("One"),
        plans.works_on("One", ANSWER),
        plans.completed("One"),
        When("<findings>", reads("tone")),
        When("Be kind.", says("Kindly.")),
    ]

    outcome = plans.plan_run(steps, FOUND, {"skills": SKILLS})

    assert outcome.text == "Kindly."
    assert [plans.offered(request) for request in plans.of_answer(outcome)] == [["read_skill"]] * 2
    assert outcome.stop_reason == "answered"


def test_a_subtask_keeps_its_skills_in_later_attempts_and_its_judge_reads_results_alone() -> None:
    steps = [
        plans.plans("One"),
        plans.works_on("One", reads("tone")),
        When("Be kind.", search()),
        says("Found."),
        plans.incomplete("One", "Ask again."),
        plans.advised("Ask again.", ANSWER),
        plans.completed("One"),
        When("<findings>", ANSWER),
    ]

    outcome = plans.plan_run(steps, {"search": replies("found " * 40)}, {"skills": SKILLS})

    last = results_in(plans.of_subtask(outcome, "One")[-1]["prompt_messages"])
    assert last == ["Be kind.", template.ELIDED_TOOL_RESULT]
    judged = text_of(plans.of_reflection(outcome, "One")[0]["prompt_messages"][-1])
    assert "found found" in judged
    assert "Be kind." not in judged


@each_strategy
def test_the_next_turn_knows_what_was_read(strategy: str) -> None:
    first = skill_run([reads("tone"), ANSWER], strategy, extra_outputs="state")
    state = {"state": first.variables["state"], "extra_outputs": "state"}

    second = skill_run([ANSWER], strategy, **state)
    third = skill_run([ANSWER], strategy, **state | {"state": second.variables["state"]})
    other = skill_run([ANSWER], strategy, **state, skills=SKILLS.replace("name: tone", "name: style"))

    known = '</skills>\n\n<skill name="tone">\nBe kind.\n</skill>'
    assert "Be kind." not in system(first)
    assert all(known in text_of(prompt[0]) for prompt in second.model.prompts + third.model.prompts)
    assert "<skill name=" not in system(other)
    assert "skills: the system prompt has those that were read before: 'tone'" in second.notes


def test_a_small_window_holds_the_skill_that_was_read_last() -> None:
    first = skill_run([reads("tone"), reads("refunds"), reads("tone"), ANSWER], extra_outputs="state")

    later = skill_run([ANSWER], state=first.variables["state"], model=model(context_size=2_000))

    assert "Be kind." in system(later)
    assert "Then check the date." not in system(later)
