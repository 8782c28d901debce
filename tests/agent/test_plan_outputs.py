"""What a run of plan and reflect leaves behind: text and thoughts, logs, usage, counts, sources."""

import re
from collections.abc import Iterator
from decimal import Decimal

import pytest

from tests.agent.plans import (
    ANSWER,
    advised,
    answers,
    blocks,
    done_at_once,
    echo,
    incomplete,
    judges,
    looked_up,
    of_subtask,
    plan_run,
    plans,
    tree,
    verdict,
    works_on,
)
from tests.agent.scenes import search
from tests.support.host import Json, When, text_of
from tests.support.wire import MODEL, USAGE, says

TWO = [plans("alpha", "beta"), *looked_up("alpha"), *done_at_once("beta")]


@pytest.mark.parametrize("words", [ANSWER, f"<think>Hm.</think>{ANSWER}"], ids=["plain", "with a thought"])
def test_with_thoughts_hidden_the_user_reads_only_the_answer(words: str) -> None:
    assert plan_run([*TWO, answers(words)], {"search": echo}).text == ANSWER


def test_with_thoughts_shown_the_plan_is_a_closed_block_and_the_thoughts_of_the_answer_begin_with_the_findings() -> (
    None
):
    thoughtful = answers(f"<think>hm</think>{ANSWER}")
    outcome = plan_run([*TWO, thoughtful], {"search": echo}, {"emit_intermediate_thoughts": True})

    plan, found = blocks(outcome.text)
    assert plan == "Plan:\n\n1. alpha\n2. beta"
    assert found == (
        "What the subtasks found:\n\n**1. alpha**\n\nAnswer to alpha.\n\n**2. beta**\n\nAnswer to beta.\n\nhm"
    )
    assert re.sub(r"<think>.*?</think>", "", outcome.text, flags=re.DOTALL).strip() == ANSWER
    assert outcome.text.endswith(f"</think>\n\n{ANSWER}")


def test_thoughts_and_remarks_of_a_subtask_are_never_shown() -> None:
    steps = [
        plans("alpha"),
        works_on("alpha", search("alpha", text="<think>secretly</think>I look it up." + "." * 500)),
        When("result for alpha", says("<think>hm</think>Answer to alpha.")),
        judges("alpha", [*says("<think>well</think>I judge.")[:-1], *verdict(is_completed=True)]),
        answers(),
    ]

    hidden = plan_run(steps, {"search": echo})
    shown = plan_run(steps, {"search": echo}, {"emit_intermediate_thoughts": True})

    assert hidden.text == ANSWER
    assert len(blocks(shown.text)) == 1
    assert not any(words in shown.text for words in ("secretly", "I look it up", "hm", "well", "I judge"))


def test_the_log_is_a_tree_of_plan_subtasks_attempts_and_answer() -> None:
    steps = [
        plans("alpha", "beta"),
        *looked_up("alpha"),
        works_on("beta", says("No.")),
        incomplete("beta", "Look elsewhere."),
        advised("Look elsewhere.", says("Yes.")),
        judges("beta", verdict(is_completed=True)),
        answers(),
    ]

    outcome = plan_run(steps, {"search": echo})

    once = [["ROUND 1", [MODEL]], ["REFLECTION", [MODEL]]]
    assert tree(outcome) == [
        ["PLAN", [MODEL]],
        [
            "1. alpha",
            [
                "ATTEMPT 1",
                ["ROUND 1", [MODEL], ["CALL search"]],
                ["ROUND 2", [MODEL]],
                ["REFLECTION", [MODEL]],
            ],
        ],
        ["2. beta", ["ATTEMPT 1", *once], ["ATTEMPT 2", *once]],
        ["ANSWER", ["ROUND 1", [MODEL]]],
        ["RUN FINISHED: answered"],
    ]


def test_every_log_is_finished_and_says_how_long_it_took() -> None:
    outcome = plan_run([*TWO, answers()], {"search": echo})

    assert {log["status"] for log in outcome.logs.values()} == {"success"}
    for log in outcome.logs.values():
        assert log["label"].startswith("RUN FINISHED") or isinstance(log["metadata"]["elapsed_time"], float)
    assert outcome.logs["plan"]["data"]["subtasks"] == ["alpha", "beta"]
    came_of_it = {"row": "SUBTASK 1", "answer": "Answer to alpha.", "completed": True, "attempts": 1}
    assert outcome.logs["subtask1"]["data"].items() >= came_of_it.items()
    assert outcome.logs["subtask1.attempt1.reflection"]["data"]["is_completed"] is True


def test_logs_of_both_subtasks_begin_before_either_ends() -> None:
    outcome = plan_run([*TWO, answers()], {"search": echo})

    states = [(log["id"].partition("-")[2], log["status"]) for log in outcome.bodies("log")]
    begun = [states.index((f"subtask{number}.attempt1", "start")) for number in (1, 2)]
    ended = [states.index((f"subtask{number}.attempt1", "success")) for number in (1, 2)]
    assert max(begun) < min(ended)


def test_usage_is_summed_over_every_call_of_the_run() -> None:
    steps = [
        says("I think of two parts."),
        plans("alpha", "beta"),
        *looked_up("alpha"),
        works_on("beta", says("Answer to beta.")),
        judges("beta", says("It is fine.")),
        When("submit_reflection", verdict(is_completed=True)),
        answers(),
    ]

    outcome = plan_run(steps, {"search": echo})

    usage, asked = outcome.last_json["execution_metadata"], len(outcome.model.requests)
    assert asked == 9
    assert usage["total_tokens"] == asked * USAGE["total_tokens"]
    assert Decimal(usage["total_price"]) == asked * Decimal(USAGE["total_price"])


def test_the_decision_summary_counts_subtasks_attempts_and_rounds() -> None:
    steps = [
        plans("alpha", "beta"),
        *looked_up("alpha"),
        works_on("beta", search("beta")),
        When("result for beta", says("No.")),
        incomplete("beta", "Look elsewhere."),
        advised("Look elsewhere.", says("Still no.")),
        incomplete("beta", "Look up."),
        answers(),
    ]

    outcome = plan_run(steps, {"search": echo}, {"maximum_attempts": 2})

    summary = outcome.last_json["decision_summary"]
    assert (summary["subtasks"], summary["subtasks_completed"], summary["attempts"]) == (2, 1, 3)
    assert summary["rounds"] == 6
    assert summary["stop_reason"] == "answered"
    assert [item["tool"] for item in summary["tool_calls"]] == ["search", "search"]
    assert outcome.variables["tool_runs"] == summary["tool_calls"]


def test_sources_of_subtasks_are_numbered_once_for_the_whole_run() -> None:
    def handler(request: Json) -> Iterator[Json]:
        resource = {"document_name": f"Book of {request['tool_parameters']['q']}", "content": "Words."}
        yield {
            "type": "retriever_resources",
            "message": {"retriever_resources": [resource], "context": ""},
            "meta": None,
        }
        yield from echo(request)

    steps = [plans("alpha", "beta"), *looked_up("alpha"), *looked_up("beta"), answers("As [1] and [2] say.")]

    outcome = plan_run(steps, {"search": handler})

    sources = outcome.variables["sources"]
    assert [source["number"] for source in sources] == [1, 2]
    assert {source["title"] for source in sources} == {"Book of alpha", "Book of beta"}
    assert all(source["cited"] for source in sources)
    for name in ("alpha", "beta"):
        number = next(source["number"] for source in sources if source["title"] == f"Book of {name}")
        assert f"[{number}] Book of {name}" in text_of(of_subtask(outcome, name)[1]["prompt_messages"][-1])
