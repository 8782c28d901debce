"""Calls that run, that do not, and that fail: checked, routed, answered in the model's order, and not repeated."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from gevent.event import Event

from internal.call import MAX_CALLS
from internal.host.session import MAX_LINE_BYTES, MAX_REQUEST_BYTES
from internal.tooling import parse_tool_arguments
from prompt import template
from tests.support.clock import FakeTime
from tests.support.host import Json, text_of
from tests.support.run import run
from tests.support.scenes import ANSWER, asks, check_prompt, ends, entry, log_of, search, wait_for
from tests.support.text_form import in_text
from tests.support.tools import Flaky, Gate
from tests.support.wire import breaks, calls, json_message, parameter, replies, text_message, tool

BAD_ARGUMENTS = {
    "broken": ('{"q": "x"', "parse error: Expecting"),
    "missing": ("{}", "validation error: missing required argument 'q'"),
    "none at all": ("", "validation error: missing required argument 'q'"),
    "the developer's": ('{"q": "x", "depth": 3}', "validation error: unknown argument 'depth'"),
}
SIZES = [{"value": "s", "label": {"en_US": "S"}}, {"value": "m", "label": {"en_US": "M"}}]
SEARCH = tool(
    "search",
    parameter("q", required=True),
    parameter("n", "number"),
    parameter("size", "select", options=SIZES),
    parameter("depth", "number", form="form"),
    runtime_parameters={"depth": 2},
)


@pytest.mark.parametrize(("arguments", "expected"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_a_call_with_unusable_arguments_does_not_run_and_the_run_goes_on(arguments: str, expected: str) -> None:
    steps = [calls(("search", arguments), ("search", {"q": "y"})), ANSWER]

    outcome = run(steps, {"search": replies("found")}, {"tools": [SEARCH]})

    assert outcome.error is None
    refused, found = outcome.tool_results()
    assert refused.startswith("tool arguments ")
    assert expected in refused
    assert found == "found"
    assert len(outcome.tools.requests) == 1
    check_prompt(outcome.model.prompts[1])
    assert [item["status"] for item in outcome.variables["tool_runs"]] == ["refused", "ok"]
    assert log_of(outcome, "CALL search")["status"] == "error"


@pytest.mark.parametrize("parameters", [[], [parameter("q"), parameter("page", required=True, default="1")]])
@pytest.mark.parametrize("written", ["null", " null\n"])
def test_null_in_place_of_arguments_calls_a_tool_that_needs_none(parameters: list[Json], written: str) -> None:
    offered: Json = {"tools": [tool("clock", *parameters)]}
    asking: Json = {**offered, "approval_required": "clock"}

    outcome = run([calls(("clock", written)), ANSWER], {"clock": replies("noon")}, offered)
    waits = run([calls(("clock", written))], {}, asking)
    resumed = run(
        [ANSWER], {"clock": replies("noon")}, {**asking, "state": waits.variables["state"], "approval": "yes"}
    )

    assert outcome.tool_results() == ["noon"]
    for each in (outcome, resumed):
        assert [request["tool_parameters"] for request in each.tools.requests] == [{"page": "1"} if parameters else {}]
        check_prompt(each.model.prompts[-1])
    assert [each["arguments"] for each in waits.variables["pending_calls"]] == [{"page": "1"} if parameters else {}]


def test_null_in_place_of_required_arguments_is_an_error_as_it_is_for_what_reads_arguments() -> None:
    error = "tool arguments parse error: expected a JSON object, got null; send one JSON object"

    outcome = run([calls(("search", "null")), ANSWER], {"search": replies("found")}, {"tools": [SEARCH]})

    assert outcome.tool_results() == [error]
    assert outcome.tools.requests == []
    assert parse_tool_arguments("null").error == error


def test_a_call_of_an_unknown_tool_is_answered_with_the_known_names() -> None:
    wanted = [calls(("serch", {"q": "x"})), ANSWER]

    outcome = run(wanted, {"search": replies("found"), "look": replies("seen")})

    assert outcome.error is None
    assert outcome.tool_results() == ["there is not a tool named serch; the tools are: search, look"]
    assert outcome.tools.requests == []
    assert "there is not a tool named serch; there are no tools" in text_of(run(wanted).model.prompts[1][-1])


def test_a_call_without_a_name_is_answered_under_a_name() -> None:
    outcome = run([[asks(entry("c1", "", "{}")), ends()], ANSWER], {"search": replies("found")})

    assert outcome.error is None
    check_prompt(outcome.model.prompts[1])


def test_a_tool_whose_name_begins_with_a_digit_is_offered_under_another_and_called_under_its_own() -> None:
    wanted = [calls(("tool_1start", {"q": "x"})), ANSWER]

    outcome = run(wanted, {"1start": replies("begun")}, {"allowed_tools": "1start"})

    assert outcome.error is None
    assert [each["name"] for each in outcome.model.requests[0]["tools"]] == ["tool_1start"]
    assert [request["tool"] for request in outcome.tools.requests] == ["1start"]
    assert outcome.tool_results() == ["begun"]
    assert [message["name"] for message in outcome.model.prompts[1] if message["role"] == "tool"] == ["tool_1start"]


def test_arguments_are_coerced_and_the_developers_values_win() -> None:
    outcome = run(
        [calls(("search", {"q": 7, "n": "3", "size": None})), ANSWER], {"search": replies()}, {"tools": [SEARCH]}
    )

    (request,) = outcome.tools.requests
    assert request["tool_parameters"] == {"q": "7", "n": 3, "depth": 2}


def test_results_keep_the_models_order_whatever_the_order_of_completion() -> None:
    second_is_done = Event()

    def slow(_request: Json) -> Iterator[Json]:
        wait_for(second_is_done)()
        yield text_message("slow result")

    def quick(_request: Json) -> Iterator[Json]:
        yield text_message("quick result")
        second_is_done.set()

    outcome = run([calls(("slow", {}), ("quick", {})), ANSWER], {"slow": slow, "quick": quick})

    assert outcome.tool_results() == ["slow result", "quick result"]
    finished = [
        body["label"] for body in outcome.bodies("log") if body["label"][:4] == "CALL" and body["status"] != "start"
    ]
    assert finished == ["CALL quick", "CALL slow"]


PARALLEL = {"all at once": (None, 8, 8), "three at a time": (3, 3, 9), "one after another": (1, 1, 4)}


@pytest.mark.parametrize(("limit", "together", "number"), PARALLEL.values(), ids=PARALLEL)
def test_calls_run_side_by_side_up_to_the_limit(limit: int | None, together: int, number: int) -> None:
    gate = Gate(together)
    wanted = [("search", {"q": str(position)}) for position in range(number)]

    outcome = run([calls(*wanted), ANSWER], {"search": gate}, {"parallel_tool_calls": limit})

    assert outcome.tool_results() == [f"result for {position}" for position in range(number)]
    assert gate.most == together


TOO_LARGE = "tool invoke error: failed to execute tool: invalid input: too large"


@pytest.mark.parametrize(
    ("fixed", "written"), [(2_000_000, 1), (1_300_000, 150_000)], ids=["fixed", "fixed and written"]
)
def test_a_call_that_is_too_large_to_send_is_refused_with_a_reason(fixed: int, written: int) -> None:
    search = tool("search", parameter("q"), runtime_parameters={"notes": "検" * fixed})

    outcome = run([calls(("search", {"q": "検" * written})), ANSWER], {"search": replies("found")}, {"tools": [search]})

    assert outcome.error is None
    assert outcome.tools.requests == []
    (result,) = outcome.tool_results()
    assert result.startswith(TOO_LARGE)
    assert outcome.variables["tool_runs"][0]["status"] == "refused"
    assert f"at most {MAX_REQUEST_BYTES:,}" in log_of(outcome, "CALL search")["error"]
    assert outcome.transport.longest_line < 4 * 1024 * 1024


def test_large_integers_keep_their_digits_and_the_log_says_what_was_sent() -> None:
    numbers = [parameter(name, "number") for name in ("account", "written", "exact")]
    own = parameter("own", "number", input_schema={"type": "integer"})
    offered = tool("pay", *numbers, own, parameter("more", "object"))
    exact: Json = {"written": "12345678901234567890", "exact": 2**53}
    wanted = ("pay", {"account": 2**53 + 1, **exact, "own": -(2**63), "more": {"id": 2**60}})

    outcome = run([calls(wanted), ANSWER], {"pay": replies("paid")}, {"tools": [offered]})

    (request,) = outcome.tools.requests
    sent = {"account": "9007199254740993", **exact, "own": "-9223372036854775808"}
    assert request["tool_parameters"] == {**sent, "more": {"id": 2**60}}
    assert log_of(outcome, "CALL pay")["data"]["arguments"] == {
        **sent,
        "more": {"id": "1152921504606846976"},
    }
    assert log_of(outcome, "NOTE pay: the host rounds integers above 2^53 within the argument 'more'")


def test_each_call_goes_to_its_own_provider_with_its_own_credential() -> None:
    offered = [
        tool("search", parameter("q"), provider="acme/web/web", credential_id="cred-web"),
        tool("search", parameter("q"), provider="acme/wiki/wiki", credential_id="cred-wiki", provider_type="mcp"),
        tool("look", parameter("q"), provider="acme/plain/plain", provider_type="workflow"),
    ]
    wanted = [("wiki_search", {"q": "b"}), ("search", {"q": "a"}), ("look", {"q": "c"})]

    def answer(request: Json) -> Iterator[Json]:
        yield text_message(request["provider"])

    outcome = run([calls(*wanted), ANSWER], {"search": answer, "look": answer}, {"tools": offered})

    assert [item["name"] for item in outcome.model.requests[0]["tools"]] == ["search", "wiki_search", "look"]
    assert outcome.tool_results() == ["acme/wiki/wiki", "acme/web/web", "acme/plain/plain"]
    asked = {item["provider"]: (item.get("credential_id"), item["tool_type"]) for item in outcome.tools.requests}
    assert asked == {
        "acme/web/web": ("cred-web", "builtin"),
        "acme/wiki/wiki": ("cred-wiki", "mcp"),
        "acme/plain/plain": (None, "workflow"),
    }


FAILED = "tool invoke error: failed to execute tool"
REPEATED = "tool invoke error: repeated failure detected; skipped duplicate call"


def test_a_failing_tool_gives_its_reason_and_keeps_its_siblings() -> None:
    handlers = {"search": breaks("kaboom at /srv/app.py line 3"), "look": replies("seen")}

    outcome = run([calls(("search", {}), ("look", {})), ANSWER], handlers, clock=FakeTime().clock)

    assert outcome.error is None
    assert outcome.tool_results() == [f"{FAILED}: kaboom at app.py line 3", "seen"]
    assert log_of(outcome, "CALL search")["status"] == "error"
    assert log_of(outcome, "CALL look")["status"] == "success"


def test_what_a_tool_said_before_it_failed_is_kept() -> None:
    handlers = {"search": breaks("kaboom", after=[text_message("half "), json_message({"a": 1})])}

    outcome = run([search(), ANSWER], handlers)

    assert outcome.tool_results() == [f'{FAILED}: kaboom\n\nhalf \n\n{{"a": 1}}']


@pytest.mark.parametrize(
    "message",
    [
        "mail sent, but the audit log failed: connection refused",
        "429 Client Error: Too Many Requests for url: https://example.com/second-step",
        "InvokeRateLimitError: slow",
    ],
)
def test_a_call_is_never_repeated_whatever_its_error_says(message: str) -> None:
    """The tool may have acted before it failed; the model reads why, and may call again."""
    time = FakeTime()
    flaky = Flaky(message)

    outcome = run([search(), search(), ANSWER], {"search": flaky}, clock=time.clock)

    assert [outcome.tool_results(number) for number in (1, 2)] == [[f"{FAILED}: {message}"], ["found"]]
    assert (flaky.calls, time.slept) == (2, [])


def test_a_temporary_failure_counts_from_its_second_time() -> None:
    flaky = Flaky("connection reset", 9)

    outcome = run([search(), search(), search(), ANSWER], {"search": flaky})

    assert [outcome.tool_results(number) for number in (1, 2, 3)] == [
        [f"{FAILED}: connection reset"],
        [f"{FAILED}: connection reset"],
        [REPEATED],
    ]
    assert flaky.calls == 2


def test_a_third_identical_success_is_answered_with_a_note_and_a_fourth_brings_the_closing_answer() -> None:
    outcome = run([search()] * 4 + [ANSWER], {"search": replies("found")})

    assert len(outcome.tools.requests) == 2
    assert outcome.tool_results(3)[0].startswith("found\n\n(This call was not run again")
    assert (outcome.text, outcome.stop_reason) == ("Done.", "repeated_calls")
    assert "No more tools will run" in outcome.model.prompts[4][-1]["content"]


def test_equal_results_of_one_turn_count_once_and_so_do_two_repeated_calls_of_one_turn() -> None:
    twice = calls(("search", {"q": "x"}), ("search", {"q": "x"}))

    outcome = run([twice, search(), twice, ANSWER], {"search": replies("found")})

    assert [len(outcome.tool_results(number)) for number in (1, 2, 3)] == [2, 1, 2]
    assert all(template.REPEATED_RESULT_NOTE in result for result in outcome.tool_results(3))
    assert (len(outcome.tools.requests), outcome.stop_reason) == (3, "answered")


def test_equal_calls_of_one_turn_run_and_one_that_failed_of_them_has_failed() -> None:
    twice = calls(("search", {"q": "x"}), ("search", {"q": "x"}))
    flaky = Flaky("kaboom")
    again = calls(("search", '{ "q" : "x" }'))

    outcome = run([twice, again, search("other"), ANSWER], {"search": flaky})

    assert outcome.tool_results(1) == [f"{FAILED}: kaboom", "found"]
    assert (outcome.tool_results(2), outcome.tool_results(3)) == ([REPEATED], ["found"])
    assert (flaky.calls, outcome.stop_reason) == (3, "answered")


@pytest.mark.parametrize("form", ["native", "text"])
def test_of_more_calls_than_a_turn_may_have_the_others_are_left_out_and_the_model_is_told(form: str) -> None:
    wanted = [("search", {"q": str(number)}) for number in range(MAX_CALLS + 44)]
    turn: Any = calls(*wanted)
    if form == "text":
        (turn,) = in_text([turn])
    turn[-1]["delta"]["message"]["opaque_body"] = {"signature": "of all calls"}

    outcome = run([turn, ANSWER], {"search": replies("found")}, {"tool_calls": form})

    assert outcome.error is None
    assert len(outcome.tools.requests) == MAX_CALLS
    assert "signature" not in json.dumps(outcome.model.prompts[1])
    last = text_of(outcome.model.prompts[1][-1])
    assert last.endswith(template.CALLS_LEFT_OUT.format(most=MAX_CALLS) + template.AGENT_NOTE_END)
    assert any("more than 256 calls" in note for note in outcome.notes)
    assert len(outcome.variables["tool_runs"]) == MAX_CALLS
    assert outcome.transport.longest_line < MAX_LINE_BYTES
