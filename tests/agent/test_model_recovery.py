"""What saves a model call: a refused opaque body is left out, a turn that was cut is asked for once more."""

from typing import Any

import pytest
from gevent.event import Event

from tests.agent.plans import answers, completed, echo, plan_run, plans, works_on
from tests.agent.scenes import ANSWER, asks, assistant_messages, entry, search, text, wait_for
from tests.support.clock import FakeTime
from tests.support.host import CallFails, Json, When
from tests.support.run import run
from tests.support.wire import calls, fails, replies, says

FOUND = {"search": replies("found")}
OPAQUE: dict[str, Any] = {"responses_output": [{"type": "reasoning", "encrypted_content": "gAAA="}]}


def opaque_bodies(prompt: list[Json]) -> list[object]:
    return [message["opaque_body"] for message in assistant_messages(prompt)]


REFUSED = (
    "unmarshal backwards invoke request failed: error decoding map: 1 error(s) decoding:\n\n"
    "* 'prompt_messages[{}].opaque_body[0]' expected type 'uint8', got unconvertible type 'map[string]interface {{}}', "
    "value: 'map[summary:{}]'"
)


@pytest.mark.parametrize("said", ["a network timed out", "a rate limit", "connection refused"])
def test_a_refused_opaque_body_is_recognised_by_its_field_whatever_value_is_quoted(said: str) -> None:
    time = FakeTime()
    refused = [CallFails(REFUSED.format(1, said))]

    outcome = run([search(opaque_body=OPAQUE), refused, ANSWER], FOUND, clock=time.clock)

    assert outcome.text == "Done."
    assert time.slept == []
    assert opaque_bodies(outcome.model.prompts[2]) == [None]
    assert said not in str(outcome.messages)


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


LOST = {"text": [text("The answer is")], "nothing": [text("")], "a thought": [text("<think>hm"), text("</think>")]}


@pytest.mark.parametrize("turn", LOST.values(), ids=LOST)
def test_a_turn_cut_without_an_error_is_asked_for_once_more(turn: list[Any]) -> None:
    outcome = run([turn, ANSWER], FOUND)

    assert (outcome.text, outcome.stop_reason) == ("Done.", "answered")
    assert any("neither finish reason nor usage" in note for note in outcome.notes)
    assert outcome.model.prompts[0] == outcome.model.prompts[1]


def test_a_turn_that_is_cut_twice_is_taken_as_it_is() -> None:
    outcome = run([[text("The answer")], [text("The answer is")]], FOUND)

    assert (outcome.text, outcome.stop_reason) == ("The answer is", "answered")
    assert sum("neither finish reason nor usage" in note for note in outcome.notes) == 2


def test_a_cut_turn_with_a_call_goes_on_and_the_log_says_so() -> None:
    outcome = run([[asks(entry("c1", "search", '{"q": "x"}'))], ANSWER], FOUND)

    assert outcome.text == "Done."
    assert len(outcome.tools.requests) == 1
    assert any("what came last may be missing" in note for note in outcome.notes)


def test_a_cut_turn_that_was_shown_is_kept_and_the_log_says_so() -> None:
    outcome = run([[text("Half an ans")]])

    assert outcome.text == "Half an ans"
    assert any("what came last may be missing" in note for note in outcome.notes)


REASONING_AND_TOOLS = (
    "[models] Bad Request Error, Error code: 400 - {'error': {'message': \"Function tools with reasoning_effort are "
    'not supported for gpt-5.6-sol in /v1/chat/completions. Please use /v1/responses instead."}}'
)


def test_the_error_of_a_model_without_tools_over_chat_completions_says_what_to_choose() -> None:
    outcome = run([fails("InvokeBadRequestError", REASONING_AND_TOOLS)], FOUND)

    assert "not supported for gpt-5.6-sol" in str(outcome.error)
    assert str(outcome.error).endswith("(choose the Responses protocol in the model's settings)")
