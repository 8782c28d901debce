"""What a model call sends, carries and counts."""

import base64
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from dify_plugin.entities.model.llm import LLMResultChunk

from internal.agent import FUNCTION_CALLING, Blueprint
from internal.calls.runner import drain
from internal.clock import Deadline
from internal.model.display import DisplayRule
from internal.model.reading import Reading, TurnSpan
from internal.plan_and_reflect import PLAN_AND_REFLECT
from tests.support.clock import FakeTime
from tests.support.host import CallFails, Json, Step
from tests.support.plans import answers, done_at_once, plans
from tests.support.run import run
from tests.support.scenes import ANSWER, FOUND, asks, assistant_messages, ends, entry, part, passes, search, text
from tests.support.wire import USAGE, calls, fails, model, says, tool

OPAQUE: dict[str, Any] = {"responses_output": [{"type": "reasoning", "encrypted_content": "gAAA="}]}
BY_ADDRESS = {"type": "image", "format": "png", "url": "https://pictures.example/a.png", "mime_type": "image/png"}
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 20).decode()


def opaque_bodies(prompt: list[Json]) -> list[object]:
    return [message["opaque_body"] for message in assistant_messages(prompt)]


def test_a_request_carries_the_plain_model_config_and_streams_without_stop_words() -> None:
    chosen = model(completion_params={"max_tokens": 500, "reasoning_effort": "low"})

    outcome = run([says("Hi")], FOUND, {"model": chosen})

    (request,) = outcome.model.requests
    assert set(request) == {
        *("provider", "model", "model_type", "mode", "completion_params"),
        *("prompt_messages", "tools", "stop", "stream"),
    }
    assert (request["stream"], request["stop"]) == (True, [])
    assert request["completion_params"] == {"max_tokens": 500, "reasoning_effort": "low"}


STOPS: dict[str, tuple[Sequence[Step], dict[str, Any], Blueprint[Any], tuple[str, ...]]] = {
    "nothing": ([ANSWER], {}, FUNCTION_CALLING, ("END", "###")),
    "a tool": ([ANSWER], {"tools": [tool("search")]}, FUNCTION_CALLING, ()),
    "a schema": ([calls(("submit_answer", {}))], {"answer_schema": '{"type": "object"}'}, FUNCTION_CALLING, ()),
    "criteria": ([ANSWER, passes()], {"answer_criteria": "Short."}, FUNCTION_CALLING, ()),
    "a plan": ([plans("alpha"), *done_at_once("alpha"), answers()], {}, PLAN_AND_REFLECT, ()),
}


@pytest.mark.parametrize(("steps", "params", "blueprint", "sent"), STOPS.values(), ids=STOPS)
def test_stop_words_are_sent_only_in_a_run_that_offers_no_tool(
    steps: Sequence[Step], params: dict[str, Any], blueprint: Blueprint[Any], sent: tuple[str, ...]
) -> None:
    stop = {"model": model(completion_params={"stop": ["END", "###"]})}

    outcome = run(steps, params={**stop, **params}, blueprint=blueprint)

    assert outcome.error is None
    assert {tuple(request["stop"]) for request in outcome.model.requests} == {sent}
    assert not [request for request in outcome.model.requests if "stop" in request["completion_params"]]
    assert sum("'stop' is dropped" in note for note in outcome.notes) == (0 if sent else 1)


def test_usage_is_summed_over_calls_and_the_last_of_a_call_counts() -> None:
    early = {**USAGE, "prompt_tokens": 999, "total_tokens": 999}
    first = [text("Hm", usage=early), *search()]

    outcome = run([first, ANSWER], FOUND)

    used = outcome.last_json["execution_metadata"]
    assert (used["prompt_tokens"], used["completion_tokens"], used["total_tokens"]) == (2_000, 10, 2_010)
    assert Decimal(used["total_price"]) == 2 * Decimal(str(USAGE["total_price"]))
    assert used["latency"] == 1.0
    assert used["prompt_unit_price"] == "1.25"


def test_an_opaque_body_goes_back_verbatim_with_its_message_and_stays_out_of_the_logs() -> None:
    first = [text("", opaque_body={"early": 1}), *search(opaque_body=OPAQUE)]

    outcome = run([first, search("y"), ANSWER], FOUND)

    assert opaque_bodies(outcome.model.prompts[2]) == [OPAQUE, None]
    assert "gAAA" not in str(outcome.messages)


@pytest.mark.parametrize(("finish_reason", "kept"), [("length", None), ("content_filter", None), ("stop", OPAQUE)])
def test_a_cut_turn_drops_its_opaque_body(finish_reason: str, kept: object) -> None:
    deadline = Deadline(FakeTime().clock, moment=2000.0)
    rule = DisplayRule(show_thoughts=False, step=1, last_step=2)
    reading = Reading(TurnSpan("round1.model", "round1", rule, deadline, deadline))

    for chunk in [text("Half", opaque_body=OPAQUE), ends(finish_reason)]:
        list(reading.read([LLMResultChunk.model_validate(chunk)]))

    assert drain(reading.finish(), list[object]().append).opaque_body == kept


REFUSALS: dict[str, list[Any]] = {
    "by the daemon": fails("InvokeBadRequestError", "source data must be an array or slice, got map"),
    "by the daemon, which quotes it": [
        CallFails(
            "unmarshal backwards invoke request failed: 'prompt_messages[1].opaque_body[0]' expected "
            "type 'uint8', got unconvertible type 'map[string]interface {}', value: 'map[summary:a rate limit]'"
        )
    ],
    "by the provider": fails("InvokeBadRequestError", "Invalid value: 'reasoning'"),
}


@pytest.mark.parametrize("refused", REFUSALS.values(), ids=REFUSALS)
def test_a_refused_opaque_body_is_done_without_for_the_rest_of_the_run(refused: list[Any]) -> None:
    time = FakeTime()
    steps = [search(opaque_body=OPAQUE), refused, search("y", opaque_body=OPAQUE), ANSWER]

    outcome = run(steps, FOUND, clock=time.clock)

    assert (outcome.error, time.slept) == (None, [])
    assert "a rate limit" not in str(outcome.messages)
    assert [opaque_bodies(prompt) for prompt in outcome.model.prompts] == [[], [OPAQUE], [None], [None, None]]
    assert any("opaque" in note for note in outcome.notes)


def test_an_opaque_body_of_a_content_part_goes_back_with_the_part_until_it_is_refused() -> None:
    first = [text([part("hm", opaque_body={"sig": "abc"})], tool_calls=[entry("c1", "search", "")]), ends()]

    outcome = run([first, fails("InvokeBadRequestError", "Invalid signature"), ANSWER], FOUND)

    assert outcome.error is None
    with_body, without = [assistant_messages(prompt)[0]["content"] for prompt in outcome.model.prompts[1:]]
    assert [item["opaque_body"] for item in with_body] == [{"sig": "abc"}]
    assert without == "hm"


@pytest.mark.parametrize("given", [{"base64_data": PIXEL}, {"url": f"data:image/png;base64,{PIXEL}"}])
def test_an_image_of_the_models_is_forwarded_and_stays_in_the_transcript(given: Json) -> None:
    image = {"type": "image", "format": "png", "mime_type": "image/png", "filename": "a.png", **given}
    first = [text([part("Drawn."), image], tool_calls=[entry("c1", "search", "")]), ends()]

    outcome = run([first, ANSWER], FOUND)

    chunks = outcome.bodies("blob_chunk")
    assert b"".join(base64.b64decode(item["blob"]) for item in chunks) == base64.b64decode(PIXEL)
    assert [item["end"] for item in chunks] == [False, True]
    (message,) = assistant_messages(outcome.model.prompts[1])
    assert [item["type"] for item in message["content"]] == ["text", "image"]


def test_an_image_by_address_is_handed_to_dify() -> None:
    outcome = run([[text([part("Here: "), BY_ADDRESS]), ends()]])

    assert outcome.bodies("image") == [{"text": "https://pictures.example/a.png"}]
    assert outcome.text == "Here:\n"  # Dify may say on a line of its own that it could not fetch it


UNSENDABLE = {
    "unreadable": ({"base64_data": "no base64!"}, "could not be read"),
    "too large": ({"base64_data": "AAAA" * 5_300_000}, "larger than"),
}


@pytest.mark.parametrize(("image", "note"), UNSENDABLE.values(), ids=UNSENDABLE)
def test_an_image_of_the_models_that_cannot_be_sent_is_noted(image: Json, note: str) -> None:
    described = {"type": "image", "format": "png", "mime_type": "image/png", **image}

    outcome = run([[text([part("Here."), described]), ends()]])

    assert outcome.error is None
    assert outcome.text == "Here."
    assert any(note in said for said in outcome.notes)


@pytest.mark.parametrize(("image", "ended"), [(BY_ADDRESS, "answered"), (UNSENDABLE["unreadable"][0], "empty")])
def test_an_answer_of_only_an_image_that_can_be_sent_is_not_empty(image: Json, ended: str) -> None:
    outcome = run([[text([{"type": "image", "format": "png", "mime_type": "image/png", **image}]), ends()]])

    assert (outcome.stop_reason, bool(outcome.text)) == (ended, ended == "empty")


def test_strings_and_parts_in_one_turn_stay_in_order() -> None:
    sound = {"type": "audio", "format": "wav", "base64_data": "AAAA", "mime_type": "audio/wav"}
    parts = [text([part("three")]), text([sound])]
    first = [text("One "), text("two "), *parts, asks(entry("c1", "search", "")), ends()]

    outcome = run([first, ANSWER], FOUND)

    (message,) = assistant_messages(outcome.model.prompts[1])
    assert [item.get("data") for item in message["content"]] == ["One two three", None]
    assert message["content"][1]["base64_data"] == "AAAA"
