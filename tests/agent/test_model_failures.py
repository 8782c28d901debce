"""Model calls that fail: what is tried again, what is done without, and how the run ends then."""

from functools import partial
from typing import Any

import pytest
from dify_plugin.errors.model import InvokeError
from gevent.event import Event

from tests.support.clock import FakeTime
from tests.support.host import CallFails, Json, When
from tests.support.plans import answers, completed, echo, plan_run, plans, works_on
from tests.support.run import run, without_id
from tests.support.scenes import ANSWER, asks, assistant_messages, entry, live, results_in, search, text, wait_for
from tests.support.wire import MODEL, calls, fails, replies, says, tool

FOUND = {"search": replies("found")}
TRANSIENT = {
    "rate limit": fails("InvokeRateLimitError", "slow down"),
    "unavailable": fails("InvokeServerUnavailableError", "overloaded"),
    "connection": fails("InvokeConnectionError", "reset by peer"),
    "cut before the first chunk": [CallFails("failed to read response body")],
    "cut after hidden text": [text("<think>hm"), text("</think>Half"), CallFails("unexpected EOF")],
    "no chunk at all": [],
}


@pytest.mark.parametrize("failure", TRANSIENT.values(), ids=TRANSIENT)
def test_a_temporary_failure_is_retried_after_one_and_four_seconds(failure: list[Any]) -> None:
    time = FakeTime()

    outcome = run([failure, failure, search(), failure, failure, ANSWER], FOUND, clock=time.clock)

    assert (outcome.error, outcome.text) == (None, "Done.")
    assert time.slept == [1.0, 4.0] * 2  # each turn has its own
    assert outcome.model.prompts[0] == outcome.model.prompts[2]
    assert sum("tried again" in note for note in outcome.notes) == 4


def test_the_third_temporary_failure_is_final() -> None:
    time, failure = FakeTime(), fails("InvokeRateLimitError", "slow down")

    outcome = run([failure] * 3, clock=time.clock)

    assert isinstance(outcome.error, InvokeError)
    assert time.slept == [1.0, 4.0]
    assert outcome.logs["round1"]["error"] == "rate limited: slow down"
    assert f"{MODEL} (openai)" in str(outcome.error)


def test_no_retry_goes_beyond_the_deadline() -> None:
    time, failure = FakeTime(), fails("InvokeServerUnavailableError")
    late = [lambda: time.advance(539 * 0.9 - 2.5), *failure]

    outcome = run([late, failure], clock=time.clock, params={"maximum_seconds": 539})

    assert isinstance(outcome.error, InvokeError)
    assert time.slept == [1.0]


TOO_LONG = "maximum context length exceeded"
LASTING = {
    "authorization": ("InvokeAuthorizationError", "that did it", "unauthorized"),
    "bad request": ("InvokeBadRequestError", "that did it", "invalid request"),
    "unheard of": ("SomethingElseError", "that did it", "unknown error"),
    "too long, and nothing to trim": ("InvokeBadRequestError", TOO_LONG, "context length exceeded"),
}


@pytest.mark.parametrize(("error_type", "said", "kind"), LASTING.values(), ids=LASTING)
def test_a_lasting_failure_ends_in_one_clear_error_with_closed_logs(error_type: str, said: str, kind: str) -> None:
    time = FakeTime()

    outcome = run([fails(error_type, said)], FOUND, clock=time.clock)

    assert isinstance(outcome.error, InvokeError)
    assert outcome.logs["round1"]["error"] == f"{kind}: {said}"
    assert outcome.error.__cause__ is None
    assert outcome.error.__suppress_context__
    assert time.slept == []
    assert {log["status"] for key, log in outcome.logs.items() if key.startswith("round1")} == {"error"}


def test_a_failure_names_no_secret() -> None:
    secret = "hunter2-hunter2"
    offered = tool("search", runtime_parameters={"api_key": secret})
    message = f"key {secret} and sk-abcdefghijklmnop refused; sent Authorization: Bearer zyxwvuts-12345"

    outcome = run([fails("InvokeAuthorizationError", message)], FOUND, {"tools": [offered]})

    assert isinstance(outcome.error, InvokeError)
    for hidden in (secret, "sk-abcdefghijklmnop", "zyxwvuts-12345"):
        assert hidden not in str(outcome.error)
        assert hidden not in str(outcome.messages)


def test_a_failure_in_a_later_round_keeps_its_logs_closed_and_emits_no_json() -> None:
    outcome = run([search(), fails("InvokeBadRequestError")], FOUND)

    assert isinstance(outcome.error, InvokeError)
    assert outcome.logs["round1"]["status"] == "success"
    assert outcome.logs["round2"]["status"] == "error"
    assert outcome.bodies("json") == []


@pytest.mark.parametrize("again", [False, True], ids=["once", "twice"])
def test_a_context_length_error_trims_the_oldest_results_and_repeats_once(*, again: bool) -> None:
    too_long = fails("InvokeBadRequestError", TOO_LONG)

    outcome = run([search("a"), search("b"), too_long, too_long if again else ANSWER], {"search": replies("f" * 3_000)})

    trimmed, whole = results_in(outcome.model.prompts[3])
    assert "left out" in trimmed
    assert without_id(whole) == "f" * 3_000
    assert any("too long" in note for note in outcome.notes)
    assert ("too long for the model" in str(outcome.error)) if again else outcome.error is None


def limits_of_each_call(advances: list[float], maximum_seconds: int) -> list[int]:
    """The SDK's limit on silence at each model call; the clock is moved on during all but the last."""
    time, limits = FakeTime(), list[int]()

    def note_limit() -> None:
        limits.append(running.session.max_invocation_timeout)

    rounds = [
        [note_limit, partial(time.advance, seconds), *search(str(number))] for number, seconds in enumerate(advances)
    ]
    running = live([*rounds, [note_limit, *ANSWER]], FOUND, {"maximum_seconds": maximum_seconds}, time.clock)
    assert [message["message"]["text"] for message in running.messages if message["type"] == "text"] == ["Done."]
    return limits


def test_silence_is_bounded_by_the_time_left_and_by_the_limit_of_the_session() -> None:
    """To the time of the closing call: an answer that streams already has that much."""
    assert limits_of_each_call([200.0, 339.5], 600) == [250, 250, 61]
    assert limits_of_each_call([100.0], 200) == [200, 100]
    assert limits_of_each_call([545.0], 600) == [250, 55]
    assert limits_of_each_call([605.0], 600)[1] > 1  # there is always an answer, though a tool took longer


OPAQUE: dict[str, Any] = {"responses_output": [{"type": "reasoning", "encrypted_content": "gAAA="}]}


def opaque_bodies(prompt: list[Json]) -> list[object]:
    return [message["opaque_body"] for message in assistant_messages(prompt)]


REFUSED = (
    "unmarshal backwards invoke request failed: error decoding map: 1 error(s) decoding:\n\n"
    "* 'prompt_messages[{}].opaque_body[0]' expected type 'uint8', got unconvertible type 'map[string]interface {{}}', "
    "value: 'map[summary:{}]'"
)


def test_a_refusal_of_a_body_that_was_not_sent_is_final_and_does_not_quote_it() -> None:
    outcome = run([[CallFails(REFUSED.format(1, "a network timed out"))]], FOUND)

    assert outcome.logs["round1"]["error"] == "invalid request: prompt_messages[1].opaque_body was refused"


def test_conversations_side_by_side_are_each_asked_again_without_their_opaque_bodies() -> None:
    """The second refusal arrives when the first has switched the habit off for the whole run already."""
    waiting, both_wait = list[str](), Event()

    def refuse() -> None:
        waiting.append("for the other")
        if len(waiting) > 1:
            both_wait.set()
        wait_for(both_wait)()
        raise CallFails(REFUSED.format(1, "x"))

    steps = [
        plans("alpha", "beta"),
        *(works_on(name, calls(("search", {"q": name}), opaque_body=OPAQUE)) for name in ("alpha", "beta")),
        *(When(f"result for {name}", [refuse]) for name in ("alpha", "beta")),
        *(When(f"result for {name}", says(f"Answer to {name}.")) for name in ("alpha", "beta")),
        *(completed(name) for name in ("alpha", "beta")),
        answers(),
    ]

    outcome = plan_run(steps, {"search": echo})

    assert outcome.error is None
    assert [entry["completed"] for entry in outcome.variables["subtasks"]] == [True, True]


CUT: dict[str, tuple[list[Any], str, str]] = {
    "text": ([[text("The answer is")], ANSWER], "Done.", "it is asked for once more"),
    "nothing": ([[text("")], ANSWER], "Done.", "it is asked for once more"),
    "a thought": ([[text("<think>hm"), text("</think>")], ANSWER], "Done.", "it is asked for once more"),
    "cut twice": ([[text("The")], [text("The answer")]], "The answer", "what came last may be missing"),
    "with a call": ([[asks(entry("c1", "search", '{"q": "x"}'))], ANSWER], "Done.", "what came last may be missing"),
    "shown": ([[text("x" * 400)]], "x" * 400, "what came last may be missing"),
}


@pytest.mark.parametrize(("turns", "shown", "note"), CUT.values(), ids=CUT)
def test_a_turn_cut_without_an_error_is_asked_for_once_more_or_kept(turns: list[Any], shown: str, note: str) -> None:
    outcome = run(turns, FOUND)

    assert (outcome.text, outcome.stop_reason) == (shown, "answered")
    assert any("neither finish reason nor usage" in said and said.endswith(note) for said in outcome.notes)
    assert len(outcome.model.prompts) == len(turns)


REASONING_AND_TOOLS = (
    "[models] Bad Request Error, Error code: 400 - {'error': {'message': \"Function tools with reasoning_effort are "
    'not supported for gpt-5.6-sol in /v1/chat/completions. Please use /v1/responses instead."}}'
)


def test_the_error_of_a_model_without_tools_over_chat_completions_says_what_to_choose() -> None:
    outcome = run([fails("InvokeBadRequestError", REASONING_AND_TOOLS)], FOUND)

    assert "not supported for gpt-5.6-sol" in str(outcome.error)
    assert str(outcome.error).endswith("(choose the Responses protocol in the model's settings)")
