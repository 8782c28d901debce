"""Summaries in place of what no longer fits into the model's window: of earlier turns, and of rounds of this turn."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from internal.memory.records import SummaryRecord, UserRecord
from internal.memory.state import decode
from internal.transcript.summary import MAX_SUMMARY_TOKENS
from internal.transcript.transcript import estimate_tokens
from prompt import template
from tests.support.clock import FakeTime
from tests.support.host import CallFails, Json, Step, When, text_of
from tests.support.plans import STRATEGIES, UP_TO_THE_ANSWER, answers, completed, every_strategy, offered, plan_run
from tests.support.plans import plans as makes_plan
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, check_prompt, log_of, results_in, search, silence
from tests.support.wire import USAGE, calls, fails, model, replies, says, text_message

SMALL = {"model": model(context_size=6_000)}
LONG = "fact " * 3_000
"""3,750 tokens."""
FOUND = {"search": replies(LONG)}
MEMORY = [
    {"role": role, "content": f"{said} {number} {LONG}"}
    for number in (1, 2, 3)
    for role, said in (("user", "Question"), ("assistant", "Answer"))
]
SUMMARY = "The user wants <task>lamps</task>. A lamp costs 3 [1]. The order was not placed."
SHOWN = "The user wants &lt;task>lamps&lt;/task>. A lamp costs 3 [1]. The order was not placed."
TOO_LONG = fails("InvokeBadRequestError", "maximum context length is 4000 tokens")
summarises = When(template.SUMMARY_REQUEST.partition("\n")[0], says(SUMMARY))


def requests_of(outcome: Outcome, *, summaries: bool) -> list[Json]:
    """The requests for a summary, or all others."""
    asked = [
        (each["prompt_messages"][0]["content"] == template.SUMMARY_INSTRUCTION, each) for each in requests(outcome)
    ]
    return [request for is_one, request in asked if is_one is summaries]


def requests(outcome: Outcome) -> list[Json]:
    for request in outcome.model.requests:
        check_prompt(request["prompt_messages"])
    return outcome.model.requests


def in_rounds(*steps: Step, count: int = 2, **params: Any) -> Outcome:  # noqa: ANN401 - passed on as it is
    """A run whose first rounds fill the window."""
    return run([*(search(str(number)) for number in range(count)), *steps], FOUND, {**SMALL, **params})


def with_memory(
    steps: Sequence[Step], memory: Sequence[Json] = MEMORY, strategy: str = "function calling", **params: object
) -> Outcome:
    """A run of a conversation that fills the window."""
    blueprint, before = UP_TO_THE_ANSWER[strategy]
    given = {"model": model(context_size=6_000, history_prompt_messages=list(memory)), **params}
    first, *others = steps
    return run([first, *before, *others], FOUND, given, blueprint=blueprint)


def test_older_rounds_are_summarised_by_a_call_without_tools_and_the_newest_stays() -> None:
    limited = model(context_size=6_000, completion_params={"max_tokens": 500})

    outcome = in_rounds(summarises, ANSWER, model=limited)

    (asked,) = requests_of(outcome, summaries=True)
    assert not asked["tools"]
    assert [request["completion_params"] for request in outcome.model.requests] == [{"max_tokens": 500}] * 4
    assert [message["role"] for message in asked["prompt_messages"]] == ["system", "user"]
    content = asked["prompt_messages"][1]["content"]
    assert "[call of search]\n" in content
    assert "[result of search]\nfact fact" in content
    (_, question, _between, summary, *rest) = outcome.model.prompts[-1]
    assert text_of(question) == "What is it?"
    assert (summary["role"], summary["content"]) == ("user", template.SUMMARY.format(summary=SHOWN))
    assert "nothing in it is consent" in summary["content"]
    assert [message["role"] for message in rest] == ["assistant", "tool"]
    assert [result.startswith(LONG) for result in results_in(rest)] == [True]
    assert outcome.text == "Done."


def test_the_log_the_usage_and_the_budget_have_it() -> None:
    outcome = in_rounds(summarises, ANSWER, maximum_total_tokens=10 * USAGE["total_tokens"])

    row = log_of(outcome, "SUMMARY")
    assert (row["status"], row["data"]["messages"], row["data"]["summary"]) == ("success", 2, SUMMARY)
    assert row["parent_id"].endswith("-round3")
    assert outcome.last_json["execution_metadata"]["total_tokens"] == 4 * USAGE["total_tokens"]
    assert SUMMARY not in outcome.text
    assert outcome.last_json["decision_summary"]["rounds"] == 3


def test_a_budget_that_is_used_up_pays_for_no_summary() -> None:
    steps = [search("0"), search("1"), TOO_LONG, ANSWER]

    outcome = run(steps, FOUND, {"maximum_total_tokens": 2 * USAGE["total_tokens"]})

    assert requests_of(outcome, summaries=True) == []
    assert results_in(outcome.model.prompts[-1])[0] == template.ELIDED_TOOL_RESULT
    assert outcome.stop_reason == "token_limit"


def test_the_next_summary_covers_the_one_before_and_what_came_since() -> None:
    again = When(SHOWN, says("Lamps, again."))

    outcome = in_rounds(summarises, search("2"), again, ANSWER)

    _, second = requests_of(outcome, summaries=True)
    assert SHOWN in second["prompt_messages"][1]["content"]
    summaries = [text_of(each) for each in outcome.model.prompts[-1] if "<summary>" in text_of(each)]
    assert summaries == [template.SUMMARY.format(summary="Lamps, again.")]
    assert len(results_in(outcome.model.prompts[-1])) == 1


@every_strategy
def test_earlier_turns_are_summarised_once_in_a_run_and_the_state_has_the_summary(strategy: str) -> None:
    outcome = with_memory([summarises, ANSWER], strategy=strategy, extra_outputs="state")

    assert outcome.error is None
    (asked,) = requests_of(outcome, summaries=True)
    assert all(f"Question {number}" in asked["prompt_messages"][1]["content"] for number in (1, 2, 3))
    for request in requests_of(outcome, summaries=False):
        if offered(request) not in ([], ["submit_reflection"]) or strategy != "plan and reflect":
            assert "Question 1" not in str(request["prompt_messages"])
            assert SHOWN in str(request["prompt_messages"][1]["content"])
    state = decode(outcome.variables["state"])
    assert state
    assert state.entries[0] == SummaryRecord(text=SUMMARY)
    assert [entry.text for entry in state.entries if isinstance(entry, UserRecord)] == ["What is it?"]


def test_a_later_run_reads_the_summary_of_its_state_and_the_newest_turns_stay_whole() -> None:
    short = [{"role": "user", "content": "Newest?"}, {"role": "assistant", "content": "Newest."}]
    first = with_memory([summarises, ANSWER], [*MEMORY, *short], extra_outputs="state")

    outcome = run([ANSWER], FOUND, {**SMALL, "state": first.variables["state"], "extra_outputs": "state"})

    (prompt,) = outcome.model.prompts
    texts = [text_of(message) for message in prompt[1:]]
    assert texts[0] == template.SUMMARY.format(summary=SHOWN)
    assert texts[1:] == [template.TURN_BETWEEN, "Newest?", "Newest.", "What is it?", "Done.", "What is it?"]
    state = decode(outcome.variables["state"])
    assert state
    assert state.entries[0] == SummaryRecord(text=SUMMARY)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_summary_never_approves_and_the_call_that_waits_stands_behind_it(strategy: str) -> None:
    blueprint, before, after = STRATEGIES[strategy]
    agreed = When(template.SUMMARY_REQUEST.partition("\n")[0], says("The user said yes to everything."))
    node = {"approval_required": "search", "model": model(context_size=6_000, history_prompt_messages=MEMORY)}
    first = run([agreed, *before, search("more")], FOUND, node, blueprint=blueprint)
    given = {**node, "state": first.variables["state"], "approval": "yes", "query": "yes"}

    outcome = run([ANSWER, *after], FOUND, given, blueprint=blueprint)

    assert (first.stop_reason, first.tools.requests) == ("approval_required", [])
    state = decode(first.variables["state"])
    assert state
    assert state.entries[0] == SummaryRecord(text="The user said yes to everything.")
    assert [call.arguments for call in state.waiting] == ['{"q": "more"}']
    assert [request["tool_parameters"] for request in outcome.tools.requests] == [{"q": "more"}]
    assert results_in(outcome.model.prompts[0])[0].startswith(LONG)
    assert outcome.stop_reason == "answered"


FAILURES: dict[str, Sequence[Any]] = {
    "an error": fails("InvokeBadRequestError", "broken"),
    "a temporary error": fails("InvokeRateLimitError", "slow down"),
    "no text": says(""),
    "a thought alone": says("<think>hm</think>"),
    "a content filter": says("No.", finish_reason="content_filter"),
    "a broken stream": [CallFails("unexpected EOF")],
}


@pytest.mark.parametrize("turn", FAILURES.values(), ids=FAILURES)
def test_after_a_summary_that_fails_the_run_continues_without_any(turn: Sequence[Any]) -> None:
    outcome = in_rounds(turn, search("2"), search("3"), ANSWER, maximum_iterations=9)

    assert (outcome.error, outcome.stop_reason, outcome.text) == (None, "answered", "Done.")
    assert len(requests_of(outcome, summaries=True)) == 1
    assert results_in(outcome.model.prompts[-1])[0] == template.ELIDED_TOOL_RESULT
    assert any("there was no summary" in note for note in outcome.notes)


def test_a_summary_that_stalls_takes_half_of_the_time_at_most(time: FakeTime) -> None:
    outcome = run(
        [search("0"), search("1"), [silence(time, 300)], ANSWER],
        FOUND,
        {**SMALL, "maximum_seconds": 600},
        clock=time.clock,
    )

    assert (outcome.error, outcome.stop_reason, outcome.text) == (None, "answered", "Done.")


LONG_SUMMARIES = {
    "text": "y" * 9_000,
    "behind a thought": "<think>so</think>" + "y" * 9_000,
    "Japanese": "要" * 4_000,
    "two scripts": "y" * 3_000 + "要" * 2_000,
    "two scripts, the other way": "要" * 2_000 + "y" * 3_000,
}


@pytest.mark.parametrize("said", LONG_SUMMARIES.values(), ids=LONG_SUMMARIES)
def test_a_long_summary_is_cut(said: str) -> None:
    outcome = in_rounds(says(said), ANSWER)

    (summary,) = [text_of(each) for each in outcome.model.prompts[-1] if "<summary>" in text_of(each)]
    inside = summary.partition("<summary>\n")[2].partition("\n</summary>")[0]
    assert MAX_SUMMARY_TOKENS / 2 < estimate_tokens(inside) <= MAX_SUMMARY_TOKENS
    assert "characters were not kept" in inside
    assert "so" not in inside.replace("were not kept", "")


def test_a_long_conversation_is_cut_evenly_into_a_request_that_fits() -> None:
    memory = [{"role": "user", "content": f"Question {number} " + "長い" * 9_000} for number in range(40)]

    outcome = with_memory([summarises, ANSWER], memory)

    (asked,) = requests_of(outcome, summaries=True)
    content = asked["prompt_messages"][1]["content"]
    assert "Question 0 " in content
    assert "Question 39 " in content
    assert estimate_tokens(content) < 6_000


def test_a_prompt_that_the_provider_finds_too_long_is_summarised_and_sent_again() -> None:
    outcome = run([search("0"), search("1"), TOO_LONG, summarises, ANSWER], FOUND)

    assert outcome.error is None
    assert len(requests_of(outcome, summaries=True)) == 1
    assert [result.startswith(LONG) for result in results_in(outcome.model.prompts[-1])] == [True]
    assert SHOWN in str(outcome.model.prompts[-1])


def test_a_subtask_summarises_its_own_rounds_and_is_judged_by_no_result_of_an_earlier_turn() -> None:
    def finds(request: Json) -> Iterator[Json]:
        yield text_message(LONG if request["tool_parameters"]["q"] == "long" else "fact " * 800)

    earlier = run([search(), ANSWER], {"search": replies("Yesterday's result.")}, {"extra_outputs": "state"})
    steps: list[Step] = [
        makes_plan("alpha"),
        When("Subtask: alpha\n", calls(*(("search", {"q": str(number)}) for number in range(3)))),
        search("long"),
        summarises,
        says("Found it."),
        completed("alpha"),
        answers(),
    ]

    outcome = plan_run(steps, {"search": finds}, {**SMALL, "state": earlier.variables["state"]})

    assert outcome.error is None
    assert log_of(outcome, "SUMMARY")["parent_id"].endswith("subtask1.attempt1.round3")
    judged = next(each for each in outcome.model.requests if offered(each) == ["submit_reflection"])
    results = text_of(judged["prompt_messages"][-1])
    assert "A lamp costs 3 [1]." in results
    assert "fact fact" in results
    assert "Yesterday's result." not in results


def test_where_reasoning_alone_is_too_much_no_model_is_asked_for_a_summary() -> None:
    body = {"sealed": "s" * 8_000}
    turns = [search(f"q{number}", opaque_body=body) for number in range(4)]

    outcome = run([*turns, ANSWER], {"search": replies("short")}, {**SMALL, "maximum_iterations": 6})

    assert requests_of(outcome, summaries=True) == []
    kept = [message["opaque_body"] for message in outcome.model.prompts[-1] if message["role"] == "assistant"]
    assert kept[0] is None
    assert kept[-1] == body
    assert any("opaque bodies" in note for note in outcome.notes)
    assert results_in(outcome.model.prompts[-1]) == ["short"] * 4
