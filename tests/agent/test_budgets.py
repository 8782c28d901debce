"""The run's budgets: tokens of all model calls, and tool calls that are sent to the host."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from internal.agent import Blueprint
from prompt import template
from tests.support.clock import FakeTime
from tests.support.example_strategy import DRAFT_AND_CHECK
from tests.support.host import CallFails, Json, text_of
from tests.support.plans import ALONE
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, CITY, FOUND, check_growth, ends, last_note, results_in, search, silent, text
from tests.support.wire import USAGE, calls, fails, model, parameter, replies, says, tool

TURN = USAGE["total_tokens"]
"""Tokens of a scripted turn that reports its usage."""
NEGATIVE = {**USAGE, "prompt_tokens": -10, "completion_tokens": -5, "total_tokens": -15}
NOTHING = {**USAGE, "prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
BEGINNING_OF_NOTE = template.BUDGET_NOTE.partition("{")[0]
loops = pytest.mark.parametrize("blueprint", ALONE.values(), ids=ALONE)


def searches(*queries: str, **more: Any) -> list[Any]:  # noqa: ANN401 - passed on as it is
    """A turn with several calls of the tool ``search``."""
    return calls(*(("search", {"q": query}) for query in queries), **more)


def asked_for(outcome: Outcome) -> list[str]:
    """The queries that the tool got, in order."""
    return [request["tool_parameters"]["q"] for request in outcome.tools.requests]


def using(tokens: int) -> Json:
    return {**USAGE, "total_tokens": tokens}


def notes_in(prompt: list[Json]) -> list[str]:
    """What the model read about its budget."""
    return [line for message in prompt for line in text_of(message).splitlines() if line.startswith(BEGINNING_OF_NOTE)]


@loops
def test_of_a_turn_that_exceeds_the_call_limit_the_first_calls_run_and_an_answer_follows(
    blueprint: Blueprint[Any],
) -> None:
    turn = searches("a", "b", "c", "d", "e")

    outcome = run([turn, ANSWER], FOUND, {"maximum_tool_calls": 3, "parallel_tool_calls": 1}, blueprint=blueprint)

    assert (outcome.text, outcome.stop_reason) == ("Done.", "call_limit")
    assert asked_for(outcome) == ["a", "b", "c"]
    closing = outcome.model.prompts[-1]
    assert results_in(closing) == ["found"] * 3 + [template.CALLS_USED_UP.format(most=3)] * 2
    assert last_note(closing) == template.CLOSING_NOTE
    assert [item["status"] for item in outcome.variables["tool_runs"]] == ["ok"] * 3 + ["refused"] * 2
    check_growth(outcome.model.requests)


@loops
def test_at_the_token_limit_no_more_tools_run_and_an_answer_follows(blueprint: Blueprint[Any]) -> None:
    steps = [searches("a"), searches("b"), ANSWER]

    outcome = run(steps, FOUND, {"maximum_total_tokens": 2 * TURN}, blueprint=blueprint)

    assert (outcome.text, outcome.stop_reason) == ("Done.", "token_limit")
    assert asked_for(outcome) == ["a"]
    closing = outcome.model.prompts[-1]
    assert results_in(closing) == ["found", template.TOKENS_USED_UP.format(most=2 * TURN)]
    assert last_note(closing) == template.CLOSING_NOTE
    assert outcome.last_json["execution_metadata"]["total_tokens"] == 3 * TURN


def test_at_80_percent_the_model_reads_once_that_little_is_left() -> None:
    steps = [searches("a", "b", "c", "d"), search("e"), ANSWER]
    params = {"maximum_tool_calls": 5, "maximum_total_tokens": 20_000}

    outcome = run(steps, FOUND, params)

    first, second, closing = outcome.model.prompts
    assert notes_in(first) == []
    assert last_note(second) == notes_in(second)[0]
    assert f"about {20_000 - TURN:,} of 20,000 tokens (prompts included) and 1 of 5 tool calls" in notes_in(second)[0]
    assert notes_in(closing) == notes_in(second)
    assert outcome.stop_reason == "call_limit"
    check_growth(outcome.model.requests)
    of_calls = notes_in(run(steps, FOUND, {"maximum_tool_calls": 5}).model.prompts[1])[0]
    assert "may use: 1 of 5 tool calls." in of_calls


PARTS = [
    {**USAGE, "prompt_tokens": 0, "total_tokens": USAGE["completion_tokens"]},
    {**USAGE, "completion_tokens": 0, "total_tokens": USAGE["prompt_tokens"]},
]


@pytest.mark.parametrize("usage", [None, NOTHING, NEGATIVE, *PARTS], ids=["none", "zeros", "negative", "part", "rest"])
def test_tokens_that_a_provider_does_not_report_are_estimated_and_the_log_says_so(usage: Json | None) -> None:
    steps = [search("a" * 400, usage=usage), says("Done.", usage=usage)]

    outcome = run(steps, FOUND, {"maximum_total_tokens": 100})

    assert (outcome.text, outcome.stop_reason) == ("Done.", "token_limit")
    assert asked_for(outcome) == []
    (note,) = [note for note in outcome.notes if note.startswith("maximum_total_tokens")]
    assert "estimate" in note
    reported = max(0, usage["total_tokens"]) if usage else 0
    assert outcome.last_json["execution_metadata"]["total_tokens"] == 2 * reported
    assert run([search("a", usage=usage), ANSWER], FOUND, {"maximum_tool_calls": 9}).notes == []


TOO_SMALL = {**USAGE, "prompt_tokens": 10, "total_tokens": 15}
"""As `openrouter`, `x` and `siliconflow` report a prompt of which they count the system prompt alone."""


def test_too_few_reported_tokens_do_not_count_for_the_limit_and_the_log_marks_them() -> None:
    steps = [search("a" * 400, usage=TOO_SMALL), says("Done.", usage=TOO_SMALL)]

    outcome = run(steps, FOUND, {"maximum_total_tokens": 200})

    assert (outcome.text, outcome.stop_reason, asked_for(outcome)) == ("Done.", "token_limit", [])
    used = outcome.last_json["execution_metadata"]
    assert (used["prompt_tokens"], used["total_tokens"]) == (20, 30), "the user has what the provider said"
    row = outcome.logs["round1.model"]
    assert row["data"]["prompt_tokens"] == 10
    assert re.fullmatch(r"limits count an estimate of \d[\d,]+", row["data"]["prompt_tokens_too_small"])
    assert row["metadata"]["total_tokens"] == 15
    assert [note for note in outcome.notes if note.startswith("maximum_total_tokens")]


def counted_of(usage: Json | None) -> int:
    """What the run counted for its limit in one turn; 0 where it believed the provider."""
    outcome = run([says("Done.", usage=usage)], params={"maximum_total_tokens": 10**9})
    notes = [note for note in outcome.notes if note.startswith("maximum_total_tokens")]
    return sum(int(note.rsplit(" ", 1)[1].replace(",", "")) for note in notes)


@given(st.integers(1, 2_000), st.integers(1, 500))
@settings(max_examples=50)
def test_a_limit_never_counts_less_than_half_of_the_estimate_and_else_what_is_reported(
    prompt_tokens: int, completion_tokens: int
) -> None:
    reported = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    total = prompt_tokens + completion_tokens

    counted = counted_of({**USAGE, **reported, "total_tokens": total})

    estimate = counted_of({**USAGE, **reported, "prompt_tokens": 0, "total_tokens": completion_tokens})
    of_prompt = estimate - completion_tokens
    assert counted == estimate * (2 * prompt_tokens < of_prompt)
    assert max(counted, total) - completion_tokens >= of_prompt / 2


def test_what_a_provider_reports_never_decides_when_a_prompt_is_summarised() -> None:
    def asked(prompt_tokens: int) -> tuple[list[list[Json]], list[str]]:
        usage = {**USAGE, "prompt_tokens": prompt_tokens, "total_tokens": prompt_tokens + 5}
        steps = [search(query, usage=usage) for query in "abc"]
        outcome = run([*steps, ANSWER], {"search": replies("long " * 2_000)}, {"model": model(context_size=6_000)})
        return outcome.model.prompts, [key for key in outcome.logs if key.endswith(".summary1")]

    prompts, summaries = asked(5_000)

    assert len(summaries) == 1
    assert asked(10) == asked(100_000) == (prompts, summaries)


def test_the_estimate_counts_prompt_text_and_arguments() -> None:
    def counted(first: list[Any], **params: Any) -> int:  # noqa: ANN401 - parameters of the node
        outcome = run([first, ANSWER], FOUND, {"maximum_total_tokens": 10**9, **params})
        (note,) = [note for note in outcome.notes if note.startswith("maximum_total_tokens")]
        return int(note.rsplit(" ", 1)[1].replace(",", ""))

    plain = counted(search("a", usage=None))

    assert plain > TURN
    assert counted(search("a" * 401, usage=None)) == plain + 100
    assert counted([text("w" * 380), *search("a", usage=None)]) == plain + 95
    assert counted([text(f"<think>{'w' * 380}</think>"), *search("a", usage=None)]) == plain + 95
    assert counted(search("a", usage=None), instruction="i" * 398) == plain + 100  # and a blank line


@pytest.mark.parametrize(
    ("failed_try", "stop_reason"),
    [
        (fails("InvokeRateLimitError"), "answered"),
        (fails("InvokeRateLimitError", after=[text("<think>Hm")]), "token_limit"),
        ([text("<think>Hm"), ends(None, using(2 * TURN)), CallFails("connection reset by peer")], "token_limit"),
    ],
    ids=["before it answered", "in the middle", "after it reported usage"],
)
def test_tokens_of_a_try_that_failed_count(failed_try: list[Any], stop_reason: str) -> None:
    time = FakeTime()

    limit = {"maximum_total_tokens": TURN + 100}
    outcome = run([failed_try, search("a"), ANSWER], FOUND, limit, clock=time.clock)

    assert (outcome.text, outcome.stop_reason) == ("Done.", stop_reason)
    assert time.slept == [1.0]


def test_calls_that_are_not_sent_do_not_count() -> None:
    turn = calls(("search", "no JSON"), ("find", {}), ("archive", {"q": "too large"}), ("search", {"q": "a"}))
    archive = tool("archive", parameter("q"), runtime_parameters={"notes": "x" * 5_000_000})
    params = {"maximum_tool_calls": 3, "tools": [tool("search", parameter("q")), archive]}

    outcome = run([turn, search("b"), ANSWER], FOUND, params)

    assert (asked_for(outcome), outcome.stop_reason) == (["a", "b"], "answered")


def test_a_call_whose_turn_never_came_before_the_deadline_does_not_count(time: FakeTime) -> None:
    params = {"maximum_tool_calls": 2, "parallel_tool_calls": 1, "maximum_seconds": 100}

    outcome = run([searches("a", "b"), ANSWER], {"search": silent(time, 95)}, params, clock=time.clock)

    assert (asked_for(outcome), outcome.stop_reason) == (["a"], "time_limit")


def test_a_second_loop_that_begins_at_the_limit_only_asks_for_the_closing_answer() -> None:
    steps = [search("a"), says("A draft."), ANSWER]

    outcome = run(steps, FOUND, {"maximum_tool_calls": 1}, blueprint=DRAFT_AND_CHECK)

    assert (outcome.text, outcome.stop_reason) == ("Done.", "call_limit")
    assert last_note(outcome.model.prompts[-1]) == template.CLOSING_NOTE


SUBMITS = calls(("submit_answer", {"city": "Bonn"}))
HANDED_OVER: dict[str, tuple[list[Any], Json, str]] = {
    "in the closing answer": ([searches("a", "b"), SUBMITS], {"maximum_tool_calls": 1}, "call_limit"),
    "beside a call, which does not count": (
        [calls(("search", {"q": "a"}), ("submit_answer", {"city": "Bonn"}))],
        {"maximum_tool_calls": 1},
        "answered",
    ),
    "after a text that reaches the limit": ([says("Bonn."), SUBMITS], {"maximum_total_tokens": TURN}, "token_limit"),
    "in a node without tools, where no limit ends a tool phase": (
        [calls(("submit_answer", {})), SUBMITS],
        {"maximum_total_tokens": TURN, "tools": []},
        "answered",
    ),
}


@pytest.mark.parametrize(("steps", "params", "stop_reason"), HANDED_OVER.values(), ids=HANDED_OVER)
def test_an_answer_is_handed_over_at_a_limit_too(steps: list[Any], params: Json, stop_reason: str) -> None:
    outcome = run(steps, FOUND, {"answer_schema": CITY, **params})

    assert (outcome.stop_reason, outcome.variables["structured_output"]) == (stop_reason, {"city": "Bonn"})
