"""Model calls that fail: what is tried again, what a second model takes over, and how the run ends then."""

import json
from functools import partial
from typing import Any

import pytest
from dify_plugin.errors.model import (
    InvokeAuthorizationError,
    InvokeBadRequestError,
    InvokeConnectionError,
    InvokeError,
    InvokeRateLimitError,
    InvokeServerUnavailableError,
)
from gevent.event import Event

from prompt import user_texts
from tests.support import plans
from tests.support.clock import FakeTime
from tests.support.host import CallFails, Json
from tests.support.run import Outcome, run, without_id
from tests.support.scenes import (
    ANSWER,
    FOUND,
    asks,
    assistant_messages,
    ends,
    entry,
    live,
    results_in,
    search,
    silence,
    text,
    wait_for,
)
from tests.support.wire import MODEL, USAGE, calls, fails, model, replies, says, tool

WAIT = "Too many tokens, please wait before trying again."
TRANSIENT = {
    "rate limit": fails("InvokeRateLimitError", "slow down"),
    "unavailable": fails("InvokeServerUnavailableError", "overloaded"),
    "connection": fails("InvokeConnectionError", "reset by peer"),
    "cut before the first chunk": [CallFails("failed to read response body")],
    "cut after hidden text": [text("<think>hm"), text("</think>Half"), CallFails("unexpected EOF")],
    "Bedrock's throttling": fails("InvokeError", f"[bedrock] Error: ThrottlingException: {WAIT}"),
    "Bedrock's throttling in a stream": fails(
        "InvokeError",
        f"[bedrock] Error: An error occurred (throttlingException) when calling the ConverseStream operation: {WAIT}",
    ),
    "Anthropic's overload in a stream": fails(
        "InvokeBadRequestError",
        "[anthropic] Bad Request Error, {'type': 'error', 'error': {'type': 'overloaded_error', 'message': 'x'}}",
    ),
}


@pytest.mark.parametrize("failure", TRANSIENT.values(), ids=TRANSIENT)
def test_a_temporary_failure_is_retried_after_one_and_four_seconds(failure: list[Any]) -> None:
    time = FakeTime()

    outcome = run([failure, failure, search(), failure, failure, ANSWER], FOUND, clock=time.clock)

    assert (outcome.error, outcome.text) == (None, "Done.")
    assert time.slept == [1.0, 4.0] * 2  # each turn has its own
    assert outcome.model.prompts[0] == outcome.model.prompts[2]
    assert sum("tried again" in note for note in outcome.notes) == 4


SLOW = fails("InvokeServerUnavailableError", "overloaded")
NOTHING = "unavailable; nothing came for {} s; tried again after 1 s"


def after_silence(time: FakeTime, seconds: float, failure: list[Any]) -> list[Any]:
    """A failure before which nothing came for these seconds."""
    return [partial(time.advance, seconds), *failure]


def test_a_failure_after_a_long_silence_is_retried_once_because_the_plugins_client_has_tried_already() -> None:
    time = FakeTime()

    outcome = run([after_silence(time, 97, SLOW), SLOW], clock=time.clock)

    assert isinstance(outcome.error, InvokeServerUnavailableError)
    assert time.slept == [1.0]
    assert [note for note in outcome.notes if "tried again" in note] == [NOTHING.format(97)]


def test_after_a_long_silence_the_fallback_takes_over_one_try_earlier() -> None:
    time = FakeTime()

    outcome = run([after_silence(time, 97, SLOW), SLOW, ANSWER], params=WITH_FALLBACK, clock=time.clock)

    assert (outcome.error, asked(outcome)) == (None, ["first", "first", "fallback"])


def test_each_turn_has_its_own_tries_after_a_long_silence() -> None:
    time = FakeTime()
    steps = [after_silence(time, 97, SLOW), search(), after_silence(time, 1, SLOW), SLOW, ANSWER]

    outcome = run(steps, FOUND, clock=time.clock)

    assert (outcome.error, outcome.text) == (None, "Done.")
    assert time.slept == [1.0, 1.0, 4.0]


SOON: dict[str, tuple[list[Any], float]] = {
    "a quick failure": ([], 3.0),
    "a stream that had begun": ([text("<think>hm")], 97.0),
}


@pytest.mark.parametrize(("begun", "seconds"), SOON.values(), ids=SOON)
def test_a_failure_that_clients_do_not_repeat_is_retried_twice(begun: list[Any], seconds: float) -> None:
    time = FakeTime()
    failed = [*begun, partial(time.advance, seconds), *SLOW]

    outcome = run([failed, failed, ANSWER], clock=time.clock)

    assert (outcome.error, outcome.text) == (None, "Done.")
    assert time.slept == [1.0, 4.0]
    assert not [note for note in outcome.notes if "nothing came" in note]


def test_a_long_silence_of_a_later_try_is_told_and_leaves_the_tries_as_they_are() -> None:
    time = FakeTime()

    outcome = run([SLOW, after_silence(time, 97, SLOW), ANSWER], clock=time.clock)

    assert (outcome.text, time.slept) == ("Done.", [1.0, 4.0])
    assert "unavailable; nothing came for 97 s; tried again after 4 s" in outcome.notes


def test_no_retry_goes_beyond_the_deadline() -> None:
    time = FakeTime()
    failure = fails("InvokeServerUnavailableError")
    late = [lambda: time.advance(539 * 0.9 - 2.5), *failure]

    outcome = run([late, failure], clock=time.clock, params={"maximum_seconds": 539})

    assert isinstance(outcome.error, InvokeError)
    assert time.slept == [1.0]


THEN: dict[str, list[Any]] = {
    "an answer": says("Done."),
    "a lasting failure": fails("InvokeAuthorizationError", "no"),
}


@pytest.mark.parametrize("then", THEN.values(), ids=THEN)
def test_the_row_of_a_model_call_says_for_how_long_nothing_came(then: list[Any]) -> None:
    time = FakeTime()

    slow = run([after_silence(time, 40, then)], clock=time.clock)
    quick = run([after_silence(time, 2, then)], clock=time.clock)

    assert slow.logs["round1.model"]["data"]["nothing_came_for"] == "40 s"
    assert "nothing_came_for" not in quick.logs["round1.model"]["data"]


def test_the_row_of_a_call_that_was_silent_until_the_time_was_up_says_so_too(time: FakeTime) -> None:
    outcome = run([[silence(time, 95)], ANSWER], FOUND, {"maximum_seconds": 100}, clock=time.clock)

    row = outcome.logs["round1.model"]
    assert (row["error"], row["data"]["nothing_came_for"]) == ("no answer in the time that was left", "95 s")


def test_silence_counts_in_the_deadline() -> None:
    """After 70 silent seconds of 100, and 15 of the second try, the run has no time left for the tool."""
    time = FakeTime()
    later = [partial(time.advance, 20), *search()]

    outcome = run([after_silence(time, 70, SLOW), later, ANSWER], FOUND, {"maximum_seconds": 100}, clock=time.clock)

    assert (outcome.text, outcome.stop_reason) == ("Done.", "time_limit")
    assert outcome.tools.requests == []


TOO_LONG = "maximum context length exceeded"
QUOTA = "[openai] Rate Limit Error, Error code: 429 - {'error': {'type': 'insufficient_quota'}}"
LASTING = {
    "quota": ("InvokeRateLimitError", QUOTA, "quota used up"),
    "content filter": ("InvokeBadRequestError", "Content Exists Risk", "content filter"),
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
    time = FakeTime()
    limits = list[int]()

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


CUT: dict[str, tuple[list[Any], str, str]] = {
    "text": ([[text("The answer is")], ANSWER], "Done.", "it is asked for once more"),
    "nothing": ([[text("")], ANSWER], "Done.", "it is asked for once more"),
    "a thought": ([[text("<think>hm"), text("</think>")], ANSWER], "Done.", "it is asked for once more"),
    "cut twice": ([[text("The")], [text("The answer")]], "The answer", "it is taken as it came"),
    "with a call": ([[asks(entry("c1", "search", '{"q": "x"}'))], ANSWER], "Done.", "it is taken as it came"),
    "shown": ([[text("x" * 400)]], "x" * 400, "it is taken as it came"),
}


@pytest.mark.parametrize(("turns", "shown", "note"), CUT.values(), ids=CUT)
def test_a_turn_cut_without_an_error_is_asked_for_once_more_or_kept(turns: list[Any], shown: str, note: str) -> None:
    outcome = run(turns, FOUND)

    assert (outcome.text, outcome.stop_reason) == (shown, "answered")
    assert any("neither finish reason nor usage" in said and said.endswith(note) for said in outcome.notes)
    assert len(outcome.model.prompts) == len(turns)


HAS_CALLS = [
    "tool_calls",
    "tool_use",
    "function_call",
    "FinishReason.TOOL_CALLS",
    "tool-calls",
    "MALFORMED_FUNCTION_CALL",
]


def lost(finish_reason: str, said: str = "") -> list[Any]:
    """A turn whose finish reason says that it has calls, without any."""
    return [text(said), ends(finish_reason)]


@pytest.mark.parametrize("finish_reason", HAS_CALLS)
@pytest.mark.parametrize("said", ["", "Let me look that up."], ids=["nothing", "a preamble"])
def test_a_turn_whose_calls_did_not_come_is_asked_for_once_more(said: str, finish_reason: str) -> None:
    outcome = run([lost(finish_reason, said), search(), ANSWER], FOUND)

    assert (outcome.text, outcome.stop_reason) == ("Done.", "answered")
    assert outcome.model.prompts[0] == outcome.model.prompts[1]
    assert [note for note in outcome.notes if "none came" in note] == [
        "the finish reason says that the turn has tool calls, and none came: it is asked for once more"
    ]


LOST: dict[str, tuple[list[Any], str, str]] = {
    "a text, twice": ([lost("tool_calls", "Half"), lost("tool_use", "What I know.")], "What I know.", "answered"),
    "nothing, twice": (
        [lost("tool_use"), lost("tool_use")],
        user_texts.NO_ANSWER["empty"]["en"],
        "empty",
    ),
    "a text that is shown": ([lost("tool_calls", "x" * 400)], "x" * 400, "answered"),
}


@pytest.mark.parametrize(("turns", "shown", "reason"), LOST.values(), ids=LOST)
def test_calls_that_do_not_come_again_leave_the_turn_as_it_is(turns: list[Any], shown: str, reason: str) -> None:
    outcome = run(turns, FOUND)

    assert (outcome.text, outcome.stop_reason) == (shown, reason)
    assert len(outcome.model.prompts) == len(turns)
    assert any(note.endswith("none came: it is taken as it came") for note in outcome.notes)


def test_calls_that_came_are_not_asked_for_again() -> None:
    called = [asks(entry("c1", "search", '{"q": "x"}')), ends("tool_calls")]

    outcome = run([called, ANSWER], FOUND)

    assert (outcome.text, outcome.notes, len(outcome.model.prompts)) == ("Done.", [], 2)


REASONING_AND_TOOLS = (
    "[models] Bad Request Error, Error code: 400 - {'error': {'message': \"Function tools with reasoning_effort are "
    'not supported for gpt-5.6-sol in /v1/chat/completions. Please use /v1/responses instead."}}'
)


def test_the_error_of_a_model_without_tools_over_chat_completions_says_what_to_choose() -> None:
    outcome = run([fails("InvokeBadRequestError", REASONING_AND_TOOLS)], FOUND)

    assert "not supported for gpt-5.6-sol" in str(outcome.error)
    assert str(outcome.error).endswith("(choose the Responses protocol in the model's settings)")


MISSES_THINKING = (
    "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is "
    "enabled, a final `assistant` message must start with a thinking block."
)
MISSES_REASONING = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"
THINKING: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "anthropic": (
        f"[anthropic] Bad Request Error, Error code: 400 - {{'error': {{'message': {MISSES_THINKING!r}}}}}",
        {"max_tokens": 9_000, "thinking": True, "thinking_budget": 2_048},
        {"max_tokens": 9_000, "thinking": False},
    ),
    "bedrock": (
        f"[bedrock] Error: ValidationException: The model returned the following errors: {MISSES_THINKING}",
        {"model_name": "Claude 4 Sonnet", "reasoning_type": True, "reasoning_budget": 2_048},
        {"model_name": "Claude 4 Sonnet", "reasoning_type": False},
    ),
    "openrouter": (
        f"[openrouter] Error: API request failed with status code 400: {MISSES_THINKING}",
        {"enable_thinking": True, "reasoning_budget": 2_048},
        {"enable_thinking": False},
    ),
    "moonshot": (
        f"[moonshot] Error: API request failed with status code 400: {MISSES_REASONING}",
        {"thinking": True, "temperature": 1.0},
        {"thinking": False, "temperature": 1.0},
    ),
    "deepseek": (
        "[deepseek] Error: The `reasoning_content` in the thinking mode must be passed back to the API.",
        {"thinking": True, "reasoning_effort": "high"},
        {"thinking": False},
    ),
    "volcengine": (
        f"[volcengine] Error: {MISSES_REASONING}",
        {"thinking": "enabled", "reasoning_effort": "high"},
        {"thinking": "disabled"},
    ),
    "a switch that has no value for off": (
        f"[deerapi] Error: {MISSES_REASONING}",
        {"enable_thinking": "dynamic", "reasoning_budget": 2_048, "top_p": 1},
        {"top_p": 1},
    ),
    "amounts alone": (
        f"[x] Error: {MISSES_REASONING}",
        {"reasoning_effort": "high", "thinking_level": "High", "effort": "max", "top_p": 1},
        {"top_p": 1},
    ),
}
WITHOUT_THINKING = "the run continues without thinking"


@pytest.mark.parametrize(("said", "params", "then"), THINKING.values(), ids=THINKING)
def test_a_run_whose_plugin_loses_thinking_blocks_continues_without_thinking(
    said: str, params: dict[str, Any], then: dict[str, Any]
) -> None:
    refused = fails("InvokeError", said)
    steps = [search("a", opaque_body=OPAQUE), refused, search("b"), ANSWER]

    outcome = run(steps, FOUND, {"model": model(completion_params=params)})

    assert (outcome.error, outcome.text) == (None, "Done.")
    assert [request["completion_params"] for request in outcome.model.requests] == [params, params, then, then]
    assert [note for note in outcome.notes if note.endswith(WITHOUT_THINKING)] == [
        f"the provider wants thinking back that the request does not have; {WITHOUT_THINKING}"
    ]
    assert not [note for note in outcome.notes if "opaque" in note]
    assert [message["opaque_body"] for message in assistant_messages(outcome.model.prompts[2])] == [OPAQUE]


DEFAULTS: dict[str, tuple[object, dict[str, Any], dict[str, Any]]] = {
    "absent": (True, {"reasoning_effort": "high"}, {"thinking": False}),
    "null": (True, {"thinking": None}, {"thinking": False}),
    "a text": ("enabled", {}, {"thinking": "disabled"}),
}


@pytest.mark.parametrize(("default", "params", "then"), DEFAULTS.values(), ids=DEFAULTS)
def test_thinking_that_a_model_does_by_default_is_switched_off(
    default: object, params: dict[str, Any], then: dict[str, Any]
) -> None:
    own = model(completion_params=params)
    own["entity"]["parameter_rules"] = [
        {"name": "thinking", "label": {"en_US": "Thinking"}, "type": "boolean", "default": default},
        {"name": "top_p", "label": {"en_US": "Top P"}, "type": "float", "default": 1.0},
    ]

    outcome = run([search(), fails("InvokeError", MISSES_REASONING), ANSWER], FOUND, {"model": own})

    assert (outcome.error, outcome.text) == (None, "Done.")
    assert [request["completion_params"] for request in outcome.model.requests] == [params, params, then]


def test_thinking_that_cannot_be_switched_off_ends_the_run_at_the_second_refusal() -> None:
    own = model(completion_params={"thinking": "adaptive"})
    own["entity"]["parameter_rules"] = [{"name": "thinking", "type": "string", "default": "adaptive"}]
    refused = fails("InvokeError", MISSES_REASONING)

    outcome = run([search(), refused, refused], FOUND, {"model": own})

    assert str(outcome.error).endswith("(switch thinking off in the model's settings)")
    assert [request["completion_params"] for request in outcome.model.requests[1:]] == [{"thinking": "adaptive"}, {}]


@pytest.mark.parametrize(
    "params",
    [{}, {"thinking": False, "thinking_budget": 2_048}, {"thinking": "disabled", "reasoning_effort": "high"}],
    ids=["absent", "off", "off, as a text"],
)
def test_where_no_parameter_switches_thinking_on_the_error_says_what_to_do(params: dict[str, Any]) -> None:
    own = model(completion_params=params)

    outcome = run([search(opaque_body=OPAQUE), fails("InvokeError", MISSES_THINKING)], FOUND, {"model": own})

    assert str(outcome.error).endswith("(switch thinking off in the model's settings)")
    assert len(outcome.model.requests) == 2


def test_a_second_refusal_for_thinking_ends_the_run() -> None:
    refused = fails("InvokeError", MISSES_THINKING)

    outcome = run([search(), refused, refused], FOUND, {"model": model(completion_params={"thinking": True})})

    assert isinstance(outcome.error, InvokeError)
    assert len(outcome.model.requests) == 3


def test_subtasks_that_were_under_way_with_thinking_are_each_asked_again_without() -> None:
    """Beta's first request is under way, with thinking, while alpha's is refused and asked again."""
    begun = Event()
    repeated = Event()
    refused = fails("InvokeError", MISSES_THINKING)
    steps = [
        plans.plans("alpha", "beta"),
        plans.works_on("alpha", [wait_for(begun), *refused]),
        plans.works_on("beta", [begun.set, wait_for(repeated), *refused]),
        plans.works_on("alpha", [repeated.set, *says("Answer to alpha.")]),
        plans.works_on("beta", says("Answer to beta.")),
        plans.completed("alpha"),
        plans.completed("beta"),
        plans.answers(),
    ]

    outcome = plans.plan_run(steps, params={"model": model(completion_params={"thinking": True})})

    assert [entry["completed"] for entry in outcome.variables["subtasks"]] == [True, True]
    for name in ("alpha", "beta"):
        before, after, *_ = plans.of_subtask(outcome, name)
        assert (before["completion_params"], after["completion_params"]) == ({"thinking": True}, {"thinking": False})


FALLBACK = "acme/relay/relay/qwen/qwen-3:free"
PROVIDER = "acme/relay/relay"
NAME = "qwen/qwen-3:free"
WITH_FALLBACK = {"fallback_model": FALLBACK}
KEY_REFUSED = fails("InvokeAuthorizationError", "wrong key")
FIRST_SENTENCE = (
    f"The provider of the model {MODEL} (openai) refused its credentials. Check the model's API key in Dify."
)
SECOND = "model qwen/qwen-3:free (relay)"


def asked(outcome: Outcome) -> list[str]:
    """The model of each request, in order."""
    return ["first" if request["model"] == MODEL else "fallback" for request in outcome.model.requests]


def beside_the_model(request: Json) -> Json:
    """A request without what says which model it is for."""
    return {name: request[name] for name in ("prompt_messages", "tools", "stop")}


FAILURES: dict[str, list[Any]] = {
    "a rate limit": [fails("InvokeRateLimitError", "slow down")] * 3,
    "a lost connection": [fails("InvokeConnectionError", "reset by peer")] * 3,
    "a refused key": [KEY_REFUSED],
    "a refused request": [fails("InvokeBadRequestError", "no such parameter")],
    "an unknown error": [fails("SomethingElseError", "odd")],
    "a prompt that is too long": [fails("InvokeBadRequestError", "maximum context length exceeded")],
    "a stream that is cut unseen": [[text("<think>hm</think>Half"), CallFails("unexpected EOF")]] * 3,
    "no chunk at all": [[]] * 2,
}


@pytest.mark.parametrize("failed", FAILURES.values(), ids=FAILURES)
def test_a_model_that_failed_for_good_is_replaced_and_reads_the_same_prompt(failed: list[Any]) -> None:
    own = model(completion_params={"max_tokens": 1000, "reasoning_effort": "high"}, mode="completion")

    outcome = run([*failed, ANSWER], FOUND, {**WITH_FALLBACK, "model": own}, clock=FakeTime().clock)

    assert (outcome.error, outcome.text, outcome.stop_reason) == (None, "Done.", "answered")
    assert asked(outcome) == [*["first"] * len(failed), "fallback"]
    *_, before, last = outcome.model.requests
    assert json.dumps(beside_the_model(last)) == json.dumps(beside_the_model(before))
    assert [last[name] for name in ("provider", "model", "mode", "completion_params")] == [PROVIDER, NAME, "chat", {}]


def test_the_fallback_stays_for_the_rest_of_the_run_and_has_the_usual_retries_then() -> None:
    time = FakeTime()
    steps = [KEY_REFUSED, search(), fails("InvokeRateLimitError"), search("y"), ANSWER]

    outcome = run(steps, FOUND, WITH_FALLBACK, clock=time.clock)

    assert outcome.text == "Done."
    assert asked(outcome) == ["first", *["fallback"] * 4]
    assert time.slept == [1.0]


def test_a_subtask_under_way_with_the_first_model_goes_to_the_fallback_when_that_fails() -> None:
    """Beta's first call is under way while alpha's fails and is asked again; then it fails as well, and only once."""
    begun = Event()
    replaced = Event()
    overloaded = fails("InvokeServerUnavailableError", "overloaded")
    steps = [
        plans.plans("alpha", "beta"),
        plans.works_on("alpha", [wait_for(begun), *KEY_REFUSED]),
        plans.works_on("beta", [begun.set, wait_for(replaced), *overloaded]),
        plans.works_on("alpha", [replaced.set, *says("Answer to alpha.")]),
        plans.works_on("beta", says("Answer to beta.")),
        plans.completed("alpha"),
        plans.completed("beta"),
        plans.answers(),
    ]
    time = FakeTime()

    outcome = plans.plan_run(steps, params=WITH_FALLBACK, clock=time.clock)

    assert [entry["completed"] for entry in outcome.variables["subtasks"]] == [True, True]
    assert time.slept == []
    for name in ("alpha", "beta"):
        of_first, of_second = plans.of_subtask(outcome, name)
        assert (of_first["model"], of_second["model"]) == (MODEL, NAME)
        assert of_first["prompt_messages"] == of_second["prompt_messages"]
    assert len([note for note in outcome.notes if "fallback model" in note]) == 2


@pytest.mark.parametrize("said", ["Half an answer", "<think>hm, let me see"])
def test_a_turn_that_the_user_has_seen_is_not_asked_for_again(said: str) -> None:
    params = {**WITH_FALLBACK, "emit_intermediate_thoughts": True}

    outcome = run([[text(said), CallFails("unexpected EOF")]], params=params)

    assert isinstance(outcome.error, InvokeConnectionError)
    assert asked(outcome) == ["first"]
    assert NAME not in str(outcome.error)


def test_the_time_that_is_up_is_no_failure_of_the_model() -> None:
    with FakeTime().governed() as time:
        outcome = run([[silence(time, 28)], ANSWER], FOUND, {**WITH_FALLBACK, "maximum_seconds": 30}, clock=time.clock)

    assert (outcome.text, outcome.stop_reason) == ("Done.", "time_limit")
    assert asked(outcome) == ["first", "first"]


LIMITED = fails("InvokeRateLimitError", "slow down")
BOTH: dict[str, tuple[list[Any], type[InvokeError], str, str]] = {
    "one after the other": (
        [LIMITED] * 3 + [KEY_REFUSED],
        InvokeAuthorizationError,
        f"The model {MODEL} (openai) has reached its rate limit or quota. Try again in a minute. The provider of",
        "rate limited: slow down; unauthorized: wrong key",
    ),
    "the fallback with its one try": (
        [KEY_REFUSED, LIMITED],
        InvokeRateLimitError,
        f"{FIRST_SENTENCE} The {SECOND} has reached its rate limit",
        "unauthorized: wrong key; rate limited: slow down",
    ),
    "the fallback, later": (
        [KEY_REFUSED, search(), fails("InvokeBadRequestError", "no")],
        InvokeBadRequestError,
        f"{FIRST_SENTENCE} The {SECOND} refused the request: no.",
        "unauthorized: wrong key; invalid request: no",
    ),
}


@pytest.mark.parametrize(("steps", "kind", "said", "logged"), BOTH.values(), ids=BOTH)
def test_where_both_fail_the_error_has_both_sentences_and_the_kind_of_the_second(
    steps: list[Any], kind: type[InvokeError], said: str, logged: str
) -> None:
    outcome = run(steps, FOUND, WITH_FALLBACK, clock=FakeTime().clock)

    assert isinstance(outcome.error, kind)
    assert str(outcome.error).startswith(said)
    assert logged in [log["error"] for log in outcome.logs.values()]
    assert "start" not in [log["status"] for log in outcome.logs.values()]


def test_after_an_approved_call_the_fallback_saves_the_run_or_both_sentences_stand_in_it() -> None:
    handlers = {"order": replies("ordered")}
    params = {**WITH_FALLBACK, "approval_required": "order"}
    asking = run([calls(("order", {"q": "lamp"}))], handlers, params)
    resumed = {**params, "state": asking.variables["state"], "approval": "yes"}

    saved = run([KEY_REFUSED, ANSWER], handlers, resumed)
    failed = run([KEY_REFUSED, fails("InvokeBadRequestError", "no such model")], handlers, resumed)

    assert (saved.text, saved.stop_reason) == ("Done.", "answered")
    assert (failed.error, failed.stop_reason) == (None, "model_failed")
    assert f"{FIRST_SENTENCE} The {SECOND} refused the request: no such model." in failed.text


def test_the_second_model_has_a_note_and_a_row_of_its_own_and_usage_counts_both() -> None:
    half_said = fails("InvokeAuthorizationError", "wrong key", after=[text("<think>hm", usage=USAGE)])

    outcome = run([half_said, search(), ANSWER], FOUND, WITH_FALLBACK)

    first, second, later = (outcome.logs[key] for key in ("round1.model", "round1.model_fallback", "round2.model"))
    assert (first["label"], first["status"], first["error"]) == (MODEL, "error", "unauthorized: wrong key")
    assert (second["label"], second["status"], second["parent_id"]) == (NAME, "success", outcome.logs["round1"]["id"])
    assert (later["label"], later["status"]) == (NAME, "success")
    said = f"the model failed (unauthorized); the run continues with the fallback model {FALLBACK}"
    assert [note for note in outcome.notes if "fallback" in note] == [said]
    assert outcome.logs["round1"]["metadata"]["total_tokens"] == 2 * USAGE["total_tokens"]
    assert outcome.last_json["execution_metadata"]["total_tokens"] == 3 * USAGE["total_tokens"]


def test_the_fallback_reads_no_opaque_bodies_and_leaves_none() -> None:
    steps = [search("a", opaque_body=OPAQUE), *FAILURES["a lost connection"], search("b", opaque_body=OPAQUE), ANSWER]

    outcome = run(steps, FOUND, WITH_FALLBACK, clock=FakeTime().clock)

    of_first, *_, of_second, last = outcome.model.prompts[1:]
    assert [message["opaque_body"] for message in assistant_messages(of_first)] == [OPAQUE]
    assert [message["opaque_body"] for message in assistant_messages(of_second)] == [None]
    assert [message["opaque_body"] for message in assistant_messages(last)] == [None, None]


def test_stop_words_belong_to_the_first_model() -> None:
    outcome = run([KEY_REFUSED, ANSWER], params={**WITH_FALLBACK, "model": model(completion_params={"stop": ["END"]})})

    assert [request["stop"] for request in outcome.model.requests] == [["END"], []]


@pytest.mark.parametrize(
    ("given", "model_asked"),
    [*((blank, "first") for blank in (None, "", "  \n", [], [None])), (f" {FALLBACK}\n", "fallback")],
    ids=repr,
)
def test_blank_is_no_fallback_and_white_space_around_a_name_does_not_count(given: object, model_asked: str) -> None:
    outcome = run([KEY_REFUSED, ANSWER], params={"fallback_model": given}, expect_all_steps=False)

    assert asked(outcome)[-1] == model_asked


ODD = {
    "a variable that does not exist": "conversation.fallback",
    "a provider alone": "langgenius/openai/openai",
    "two lines": "langgenius/openai/openai/gpt-5\nlanggenius/openai/openai/gpt-5-mini",
    "a text": "the small one, please / or the large one / whichever / is free",
    "a list": ["langgenius/openai/openai/gpt-5"],
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_any_other_text_is_one_clear_error_before_any_model_call(odd: object) -> None:
    outcome = run([], params={"fallback_model": odd})

    assert isinstance(outcome.error, InvokeBadRequestError)
    assert str(outcome.error).startswith("parameter 'fallback_model': ")
    assert ("does not exist" if odd == "conversation.fallback" else "provider/model") in str(outcome.error)
    assert outcome.messages == []


# What the user reads when the run fails after something was shown.

BREAKS_OFF = {
    "an answer": ([text("x" * 400)], "x" * 400 + "\n\n"),
    "a thought": ([text("<think>hm")], "<think>\nhm\n</think>\n\n"),
    "an answer in a code block": ([text("```sh\n" + "x" * 400)], "```sh\n" + "x" * 400 + "\n```\n\n"),
    "an answer behind a code block": ([text("```\nx\n```\n" + "x" * 400)], "```\nx\n```\n" + "x" * 400 + "\n\n"),
}


@pytest.mark.parametrize(("chunks", "shown"), BREAKS_OFF.values(), ids=BREAKS_OFF)
def test_a_failure_behind_shown_text_ends_it_with_one_line(chunks: list[Json], shown: str) -> None:
    """Dify takes the default value of a node only where nothing was streamed."""
    failed = [*chunks, CallFails("unexpected EOF")]

    outcome = run([failed] * 3, params={"emit_intermediate_thoughts": True}, expect_all_steps=False)

    assert isinstance(outcome.error, InvokeError)
    assert outcome.text == shown + user_texts.FAILED_AFTER_TEXT["en"]
    assert outcome.variables == {}


@pytest.mark.parametrize(
    ("query", "language"), [("これは何ですか。", "ja"), ("这是什么？", "zh"), ("O que é isso?", "pt")]
)
def test_that_line_is_in_the_language_of_the_user(query: str, language: str) -> None:
    outcome = run([[text("x" * 400), CallFails("unexpected EOF")]], params={"query": query})

    assert outcome.text.endswith(f"\n\n{user_texts.FAILED_AFTER_TEXT[language]}")


def test_a_failure_before_anything_was_shown_says_nothing_so_that_the_default_value_is_shown() -> None:
    outcome = run([fails("InvokeAuthorizationError", "revoked")])

    assert isinstance(outcome.error, InvokeAuthorizationError)
    assert outcome.text == ""
