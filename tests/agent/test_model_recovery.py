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
