"""Long results in whole runs: the note that leads to ``read_result``, what it reads, and what it does not count as."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from internal.budget import MAX_LOOKUP_TURNS
from internal.memory.records import RoundRecord
from internal.memory.state import decode
from prompt import template, tool_errors
from tests.support import plans
from tests.support.host import Json, When, text_of
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, CITY, check_growth, log_of, results_in, search
from tests.support.wire import USAGE, calls, model, parameter, replies, says, text_message, tool

TEXT = " ".join(f"word{number}" for number in range(400))
LONG = {"search": replies(TEXT)}
LIMIT = {"tool_result_limit": 1000}
NO_MORE_READING = template.NO_MORE_LOOKUPS.format(name="read_result")
OFFER = re.compile(r'read_result\(id="(r\d+)", offset=(\d+)\)\]')


def reads(*wanted: Json) -> list[Any]:
    """A turn that calls only ``read_result``."""
    return calls(*(("read_result", arguments) for arguments in wanted))


def long_run(*steps: Any, **params: Any) -> Outcome:  # noqa: ANN401 - turns and parameters
    """A run whose tool says more than the limit of 1,000 characters."""
    return run(steps, LONG, {**LIMIT, **params})


def names(runs: Sequence[Json]) -> list[str]:
    return [entry["tool"] for entry in runs]


@pytest.mark.parametrize("strategy", plans.STRATEGIES)
def test_a_cut_result_is_read_to_its_end(strategy: str) -> None:
    blueprint, before, after = plans.STRATEGIES[strategy]
    turns = [search()]
    while True:  # the next run reads where this one was told to
        outcome = run([*before, *turns, ANSWER, *after], LONG, LIMIT, blueprint=blueprint)
        requests = [request for request in outcome.model.requests if "search" in plans.offered(request)]
        results = results_in(requests[-1]["prompt_messages"])
        offer = OFFER.search(results[-1])
        if offer is None:
            break
        turns.append(reads({"id": offer[1], "offset": int(offer[2])}))

    assert outcome.error is None
    assert "".join(result.partition("\n[")[0] for result in results) == TEXT
    assert max(map(len, results)) <= 1000
    check_growth(requests)
    assert [plans.offered(request) for request in requests] == [["search"]] + [["search", "read_result"]] * len(turns)
    assert names(outcome.variables["tool_runs"]) == ["search"]
    rows = [log for log in outcome.logs.values() if log["label"].startswith("ROUND ")]
    assert outcome.last_json["decision_summary"]["rounds"] == len(rows) > len(turns)
    assert len(outcome.last_json["decision_summary"]["tool_calls"]) == 1
    assert [log["label"] for log in outcome.logs.values()].count("CALL read_result") == len(turns) - 1
    assert outcome.stop_reason == "answered"


def test_log_and_repeat_guard_have_the_result_without_the_note_of_this_run() -> None:
    outcome = long_run(search(), search(), search(), ANSWER)

    assert "read_result(id=" not in str(outcome.messages)
    assert "ask for less to see them" in log_of(outcome, "CALL search")["data"]["tool_response"]
    assert template.REPEATED_RESULT_NOTE in outcome.tool_results(3)[0]
    assert len(outcome.tools.requests) == 2


@pytest.mark.parametrize("said", [TEXT, "x" * 900], ids=["a long one", "one that its sources push over the limit"])
def test_a_result_and_its_sources_share_the_limit_and_the_whole_result_is_kept(said: str) -> None:
    described = {"document_name": "s" * 300, "content": "c"}
    source: Json = {"type": "retriever_resources", "message": {"retriever_resources": [described]}, "meta": None}

    outcome = run([search(), reads({"id": "r1", "offset": 10}), ANSWER], {"search": replies(said, source)}, LIMIT)

    (cut,) = outcome.tool_results(1)
    assert len(cut) <= 1000
    assert OFFER.search(cut)
    assert f"{template.TOOL_SOURCES_HEADER}\n[1] sss" in cut
    assert outcome.tool_results(2)[0].startswith(said[10:900])


def test_turns_that_only_read_are_no_tool_rounds() -> None:
    read = reads({"id": "r1", "offset": 10}, {"id": "r1", "find": "word7"})

    outcome = long_run(
        search("a"), read, read, read, search("b"), ANSWER, maximum_iterations=2, emit_intermediate_thoughts=True
    )

    assert outcome.stop_reason == "iteration_limit"
    assert names(outcome.variables["tool_runs"]) == ["search", "search"]
    assert [entry["round"] for entry in outcome.variables["tool_runs"]] == [1, 5]
    assert outcome.last_json["decision_summary"]["rounds"] == 5
    assert outcome.last_json["execution_metadata"]["total_tokens"] == 6 * USAGE["total_tokens"]
    assert len(set(outcome.tool_results(2))) == 2
    assert outcome.tool_results(2) == outcome.tool_results(3) == outcome.tool_results(4)
    assert "read_result" not in outcome.text


def test_reading_is_not_in_the_call_budget_and_its_tokens_are_in_the_token_budget() -> None:
    read = reads({"id": "r1"}, {"id": "r1", "offset": 10})

    by_calls = long_run(search("a"), read, read, search("b"), ANSWER, maximum_tool_calls=2)
    by_tokens = long_run(search("a"), read, read, ANSWER, maximum_total_tokens=3 * USAGE["total_tokens"])

    assert (by_calls.stop_reason, len(by_calls.tools.requests)) == ("call_limit", 2)
    assert (by_tokens.stop_reason, len(by_tokens.tools.requests)) == ("token_limit", 1)


def test_after_so_many_turns_reading_is_refused_and_counts_as_a_round() -> None:
    read = reads({"id": "r1", "offset": 10})
    both = calls(("read_result", {"id": "r1"}), ("search", {"q": "b"}))

    outcome = long_run(search(), *[read] * MAX_LOOKUP_TURNS, both, read, ANSWER, maximum_iterations=3)

    assert MAX_LOOKUP_TURNS == 20
    assert outcome.tool_results(21)[0].startswith(TEXT[10:50])
    refused, found = outcome.tool_results(22)
    assert refused == NO_MORE_READING
    assert found.startswith("word0 ")
    assert outcome.tool_results(23) == [NO_MORE_READING]
    assert outcome.stop_reason == "iteration_limit"
    assert outcome.last_json["decision_summary"]["rounds"] == 23
    assert names(outcome.variables["tool_runs"]) == ["search", "search"]


def test_what_cannot_be_read_is_told_and_no_round_either() -> None:
    wrong: dict[str, Json] = {
        "'r7' in this conversation; the ids are: r1.": {"id": "r7"},
        "in this conversation; the ids are: r1.": {"id": "x" * 10_000},
        f"r1 has {len(TEXT)} characters; the offset must be": {"id": "r1", "offset": 10**400},
        "tool arguments validation error: parameter 'offset': ": {"id": "r1", "offset": -1},
        "give either offset or find, not both": {"id": "r1", "offset": 1, "find": "a"},
        "tool arguments validation error: ": {"offset": 1},
    }

    outcome = long_run(search(), *[reads(*wrong.values())] * 2, reads({"id": "r1"}), ANSWER, maximum_iterations=2)

    told = outcome.tool_results(2)
    assert all(words in text for words, text in zip(wrong, told, strict=True))
    assert outcome.tool_results(3) == told
    assert outcome.tool_results(4)[0].startswith("word0 ")
    assert log_of(outcome, "CALL read_result")["status"] == "error"
    assert names(outcome.variables["tool_runs"]) == ["search"]
    assert outcome.stop_reason == "answered"


def test_before_any_result_was_cut_there_is_no_such_tool() -> None:
    outcome = run([reads({"id": "r1"}), search(), ANSWER], {"search": replies("x" * 1000)}, LIMIT)

    assert [plans.offered(request) for request in outcome.model.requests] == [["search"]] * 3
    assert outcome.tool_results(2) == ["x" * 1000]
    assert outcome.tool_results() == ["there is not a tool named read_result; the tools are: search"]
    assert names(outcome.variables["tool_runs"]) == ["search"]


def test_with_an_answer_schema_reading_is_not_a_wrong_answer_and_a_closing_hand_over_does_not_read() -> None:
    read = reads({"id": "r1"})
    submit = calls(("submit_answer", {"city": "Rome"}))
    steps = [search("a"), *[read] * 5, search("b"), read, submit]

    outcome = long_run(*steps, answer_schema=CITY, maximum_iterations=2)

    check_growth(outcome.model.requests)
    assert plans.offered(outcome.model.requests[1]) == ["search", "submit_answer", "read_result"]
    assert outcome.tool_results(6)[0].startswith("word0 ")
    assert outcome.tool_results(8) == [tool_errors.REFUSED_AT_THE_END]
    assert outcome.variables["structured_output"] == {"city": "Rome"}
    assert names(outcome.variables["tool_runs"]) == ["search", "search", "submit_answer"]


def test_state_and_variables_have_the_cut_result_and_nothing_of_reading() -> None:
    outputs = "state, tool_results"
    read = reads({"id": "r1", "find": "word200"})
    unknown = calls(("nope", {}))
    outcome = long_run(search(), read, unknown, ANSWER, extra_outputs=outputs)

    state = decode(outcome.variables["state"])
    assert state
    found, _unknown = [entry for entry in state.entries if isinstance(entry, RoundRecord)]
    assert [call.tool for call in found.calls] == ["search"]
    assert "ask for less to see them" in str(found.calls[0].result)
    assert "read_result" not in str(state)
    assert "word200" not in str(state)
    assert names(outcome.variables["tool_results"]) == ["search", "nope"]
    assert "read_result" not in str(outcome.variables)


def test_the_result_of_an_approved_call_is_read_in_the_run_that_resumes() -> None:
    asking = {"approval_required": "search"}
    first = long_run(search(), **asking)
    resumed = {"state": first.variables["state"], "approval": "yes", "query": "yes"}

    outcome = long_run(reads({"id": "r1", "find": "word200"}), ANSWER, **asking, **resumed)

    assert [plans.offered(request)[-1] for request in outcome.model.requests] == ["read_result", "read_result"]
    cut, found = results_in(outcome.model.prompts[-1])
    assert OFFER.search(cut)
    assert "word199 word200 word201" in found


def test_an_old_result_that_the_window_dropped_can_still_be_read() -> None:
    steps = [search("a"), search("b"), search("c"), reads({"id": "r1", "find": "word100"}), ANSWER]

    outcome = run(steps, LONG, {**LIMIT, "model": model(context_size=1_300)})

    results = results_in(outcome.model.prompts[-1])
    assert results[0] == template.ELIDED_TOOL_RESULT
    assert "word99 word100 word101" in results[-1]


def test_a_tool_of_the_same_name_gets_another() -> None:
    offered_tools = [tool("read_result", parameter("q"))]

    outcome = run(
        [calls(("tools_read_result", {})), ANSWER], {"read_result": replies(TEXT)}, {"tools": offered_tools, **LIMIT}
    )

    assert plans.offered(outcome.model.requests[0]) == ["tools_read_result"]
    assert plans.offered(outcome.model.requests[1]) == ["tools_read_result", "read_result"]
    assert names(outcome.variables["tool_runs"]) == ["tools_read_result"]


@pytest.mark.parametrize("position", range(560, 700, 20))
def test_secrets_are_replaced_before_anything_is_cut(position: int) -> None:
    offered_tool = tool("search", runtime_parameters={"api_key": "hunter2-hunter2"})
    said = "m" * position + "hunter2-hunter2" + "m" * 5000
    steps = [calls(("search", {})), *(reads({"id": "r1", "offset": at}) for at in (position, position + 4)), ANSWER]

    outcome = run(steps, {"search": replies(said)}, {"tools": [offered_tool], **LIMIT})

    assert "hunter2" not in str(outcome.model.prompts)
    assert "hunter2" not in str(outcome.bodies("log"))
    assert outcome.tool_results(2)[0].startswith("[redacted]mmm")


def echo(request: Json) -> Iterator[Json]:
    """A long result that begins with what was asked for."""
    yield text_message(f"{request['tool_parameters']['q']} {TEXT}")


def test_a_subtask_reads_its_own_results_only() -> None:
    both = reads({"id": "r1"}, {"id": "r2"})
    steps = [
        plans.plans("alpha", "beta"),
        plans.works_on("alpha", search("alpha")),
        plans.works_on("beta", search("beta")),
        When("alpha word0", both),
        When("beta word0", both),
        When("the ids are: r1.", says("Found.")),
        When('to read on: read_result(id="r2"', says("Found.")),
        plans.completed("alpha"),
        plans.completed("beta"),
        plans.answers(),
    ]

    outcome = plans.plan_run(steps, {"search": echo}, LIMIT)

    assert outcome.error is None
    for name in ("alpha", "beta"):
        requests = plans.of_subtask(outcome, name)
        check_growth(requests)
        cut, *read = results_in(requests[-1]["prompt_messages"])
        (own,) = OFFER.findall(cut)
        mine, others = read if own[0] == "r1" else reversed(read)
        assert mine.startswith(f"{name} word0 ")
        assert others.endswith(f"in this conversation; the ids are: {own[0]}.")


def test_a_later_attempt_still_reads_and_the_judge_sees_what_was_read() -> None:
    steps = [
        plans.plans("alpha"),
        plans.works_on("alpha", search("alpha")),
        says("Not found."),
        plans.incomplete("alpha", "Read on."),
        plans.advised("Read on.", reads({"id": "r1", "find": "word321"})),
        says("Found."),
        plans.completed("alpha"),
        plans.answers(),
    ]

    outcome = plans.plan_run(steps, {"search": echo}, LIMIT)

    assert outcome.error is None
    assert [plans.offered(request)[-1] for request in plans.of_subtask(outcome, "alpha")] == [
        "search",
        *["read_result"] * 3,
    ]
    judged = plans.of_reflection(outcome, "alpha")
    first, second = (text_of(request["prompt_messages"][-1]) for request in judged)
    assert "alpha word0" in first
    assert "characters left out" in first
    assert "read_result" not in str(judged[0])
    assert [plans.offered(each) for each in judged] == [["submit_reflection"]] * 2
    assert "word320 word321 word322" in second
    assert outcome.last_json["decision_summary"]["rounds"] == 5
    assert names(outcome.variables["tool_runs"]) == ["search"]
