"""The log tree: parents, labels, statuses, times, small previews, and notes of what was read differently."""

import json
from typing import Any

import pytest

from internal.render.log import LogContent, LogTree
from internal.render.messages import render
from internal.text.secrets import KnownSecrets, Redactor
from tests.agent.scenes import ANSWER, log_of, search
from tests.support.host import CallFails, Json
from tests.support.run import Outcome, run
from tests.support.wire import USAGE, breaks, calls, model, parameter, replies, says, tool

HANDLERS = {"search": replies("found"), "look": breaks("kaboom")}


def two_rounds() -> Outcome:
    return run([calls(("search", {"q": "a"}), ("look", {})), search("b"), ANSWER], HANDLERS, {"maximum_iterations": 2})


def parents(outcome: Outcome) -> dict[str, str | None]:
    by_id = {log["id"]: log["label"] for log in outcome.logs.values()}
    return {key: by_id.get(log["parent_id"]) for key, log in outcome.logs.items()}


def test_the_tree_is_rounds_then_turns_and_calls() -> None:
    assert parents(two_rounds()) == {
        "round1": None,
        "round1.model": "ROUND 1",
        "round1.call1": "ROUND 1",
        "round1.call2": "ROUND 1",
        "round2": None,
        "round2.model": "ROUND 2",
        "round2.call1": "ROUND 2",
        "closing": None,
        "closing.model": "CLOSING ANSWER",
        "summary": None,
    }


def test_a_log_is_opened_before_it_is_finished_and_both_in_one_place() -> None:
    outcome = two_rounds()

    for key, log in outcome.logs.items():
        states = [body for body in outcome.bodies("log") if body["id"] == log["id"]]
        if key != "summary":
            assert [state["status"] for state in states] == ["start", log["status"]]
        assert log["status"] in {"success", "error"}
        assert len({(state["parent_id"], state["label"]) for state in states}) == 1


def test_only_failed_entries_have_the_status_error() -> None:
    failed = {key for key, log in two_rounds().logs.items() if log["status"] == "error"}

    assert failed == {"round1.call2"}


def test_every_finished_log_of_the_tree_has_its_seconds_as_a_number() -> None:
    for key, log in two_rounds().logs.items():
        if key != "summary":
            assert isinstance(log["metadata"]["elapsed_time"], int | float)


def test_the_model_log_has_tokens_price_and_calls() -> None:
    log = two_rounds().logs["round1.model"]

    assert log["data"]["tool_calls"] == ["search", "look"]
    assert log["data"]["finish_reason"] == "tool_calls"
    assert log["metadata"]["total_tokens"] == USAGE["total_tokens"]
    assert isinstance(log["metadata"]["total_price"], float)


def test_a_round_says_what_the_model_said_its_calls_their_results_and_its_cost() -> None:
    found = f"found{'.' * 9_000}"
    first = calls(("search", {"q": "a"}), ("look", {}), text="I look around.")

    outcome = run([first, ANSWER], {**HANDLERS, "search": replies(found)})

    data = outcome.logs["round1"]["data"]
    assert list(data) == sorted(data) == ["assistant", "calls", "cost", "failed_calls"]
    assert data["assistant"] == "I look around."
    assert [(call["call"], call["status"]) for call in data["calls"]] == [
        ('search {"q": "a"}', "ok"),
        ("look {}", "error"),
    ]
    assert data["calls"][0]["result"] == found[:300]
    assert data["calls"][1]["result"].endswith("kaboom")
    assert data["cost"] == "15 tokens, 0.0000625 USD"
    assert outcome.logs["round2"]["data"] == {"assistant": "Done.", "cost": "15 tokens, 0.0000625 USD"}


def test_notes_of_the_set_up_are_in_the_last_row_even_of_a_run_that_fails() -> None:
    odd = {"tools": [tool("search", parameter("f", "hologram"))]}
    note = "tool 'search': parameter 'f' is left out: a model cannot fill in the type 'hologram'"

    ended, failed = run([ANSWER], HANDLERS, odd), run([[CallFails("no")]], HANDLERS, odd)

    assert next(iter(ended.logs)) == next(iter(failed.logs)) == "round1"
    assert ended.logs["summary"]["data"]["notes"] == [note]
    assert list(failed.logs)[-1] == "notes"
    assert failed.logs["notes"]["data"]["notes"] == [note]


def test_a_call_log_has_arguments_and_tool_response() -> None:
    log = log_of(two_rounds(), "CALL search")

    assert log["data"]["arguments"] == {"q": "a"}
    assert log["data"]["tool_response"] == "found"
    assert log["metadata"]["provider"] == "acme/tools/tools"


def test_a_row_has_the_ids_of_its_requests_from_the_start() -> None:
    outcome = run([[CallFails("429 rate limit")], search("a"), ANSWER], {"search": breaks("429 rate limit")})

    first, call, second = (outcome.logs[key] for key in ("round1.model", "round1.call1", "round2.model"))
    ids = [each for log in (first, call, second) for each in log["data"]["request_ids"]]
    assert ids == outcome.transport.request_ids
    assert [len(log["data"]["request_ids"]) for log in (first, call, second)] == [2, 1, 1]
    started = [body for body in outcome.bodies("log") if body["status"] == "start" and "request_ids" in body["data"]]
    assert [len(body["data"]["request_ids"]) for body in started] == [1, 2, 1, 1]


def test_a_call_that_never_leaves_has_the_models_id_and_none_of_a_request() -> None:
    outcome = run([calls(("search", {"x": 1}), ("search", {"q": "a"})), ANSWER], HANDLERS)

    refused, ran = outcome.logs["round1.call1"]["data"], outcome.logs["round1.call2"]["data"]
    assert "request_ids" not in refused
    assert refused["tool_call_id"] == "call_1"
    assert (ran["tool_call_id"], len(ran["request_ids"])) == ("call_2", 1)


def test_the_log_of_a_refused_call_shows_what_the_model_wrote() -> None:
    outcome = run([calls(("search", '{"q": ')), ANSWER], HANDLERS)

    log = log_of(outcome, "CALL search")
    assert log["data"]["arguments"] == '{"q": '
    assert log["data"]["tool_response"].startswith("tool arguments parse error")
    assert log["status"] == "error"


def test_previews_of_any_value_stay_small() -> None:
    arguments = {"q": "a" * 9_000}
    long_names = {f"key{number}": "v" for number in range(5_000)}
    handlers = {"search": replies("r" * 15_000, {"type": "json", "message": {"json_object": long_names}, "meta": None})}

    outcome = run([calls(("search", arguments), text="t" * 9_000), ANSWER], handlers)

    assert max(len(json.dumps(log["data"])) for log in outcome.logs.values()) < 10_000
    assert max(len(log["label"]) for log in outcome.logs.values()) <= 120


def test_ids_of_two_runs_differ() -> None:
    first, second = ({body["id"] for body in two_rounds().bodies("log")} for _ in range(2))

    assert not first & second


NOTES: dict[str, tuple[Json, str]] = {
    "clamped": ({"maximum_iterations": -3}, "maximum_iterations: -3 is outside 1 to 100; 1 is used"),
    "not a number": ({"tool_result_limit": "many"}, "tool_result_limit: not a number; 20000 is used"),
    "not allowed": ({"allowed_tools": "look"}, "tool 'search' is left out: not among the allowed tools"),
    "no such tool": ({"allowed_tools": "look, nope"}, "allowed_tools: no tool is called 'nope'"),
    "odd parameter": (
        {"tools": [tool("search", parameter("f", "hologram"))]},
        "tool 'search': parameter 'f' is left out: a model cannot fill in the type 'hologram'",
    ),
    "override": ({"prompt_policy_overrides": '{"persistance_policy": "x"}'}, "unknown key 'persistance_policy'"),
    "broken override": ({"prompt_policy_overrides": '{"extra_policy": '}, "starts like JSON but is not valid"),
    "stop": ({"model": model(completion_params={"stop": ["x"]})}, "'stop' is dropped"),
    "history": (
        {"model": model(history_prompt_messages=[{"role": "wizard", "content": "x"}])},
        "message 1 of the history",
    ),
}


@pytest.mark.parametrize(("params", "note"), NOTES.values(), ids=NOTES)
def test_changed_parameters_are_noted(params: dict[str, Any], note: str) -> None:
    outcome = run([ANSWER], HANDLERS, params)

    assert outcome.error is None
    assert any(note in text for text in outcome.notes), outcome.notes


def test_a_plain_run_has_no_notes() -> None:
    assert run([says("Done.")], HANDLERS).notes == []


def test_no_tool_is_left_when_none_is_allowed() -> None:
    outcome = run([ANSWER], HANDLERS, {"allowed_tools": ["nope"]})

    assert outcome.model.requests[0]["tools"] in (None, [])


def test_an_event_of_an_unknown_type_is_an_error_and_not_passed_over() -> None:
    """A type checker says so before: the matches over events are closed."""
    unknown: Any = object()
    secrets = KnownSecrets(Redactor())

    with pytest.raises(AssertionError, match="unreachable"):
        list(render([unknown], secrets, LogContent()))
    with pytest.raises(AssertionError, match="unreachable"):
        list(LogTree(secrets, LogContent()).messages(unknown))
