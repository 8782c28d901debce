"""The soft deadline: in tools, in a silent model, and in the closing call."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

import pytest
from gevent import Timeout
from gevent.event import Event

from internal import loop
from internal.calls import runner as side_by_side
from prompt import template, user_texts
from tests.support.clock import PATIENCE, FakeTime
from tests.support.host import CallFails, Json
from tests.support.run import run
from tests.support.scenes import (
    ANSWER,
    FOUND,
    asks,
    cut_off,
    entry,
    last_note,
    log_of,
    results_in,
    search,
    silence,
    silent,
    submits,
    text,
)
from tests.support.wire import calls, replies, says, text_message

SHORT = {"maximum_seconds": 30}  # the tool phase ends after 27
PAST = 27.5
"""Seconds after which the tool phase of a short run is over, and its closing answer is not."""
LATE = "tool invoke error: failed to execute tool: timeout"


def test_tools_that_run_at_the_deadline_are_given_up_and_answered_as_timed_out(time: FakeTime) -> None:
    handlers = {"slow": silent(time, PAST), "search": replies("found")}

    outcome = run([calls(("slow", {}), ("search", {})), ANSWER], handlers, SHORT, clock=time.clock)

    assert outcome.error is None
    assert (outcome.text, outcome.stop_reason) == ("Done.", "time_limit")
    assert results_in(outcome.model.prompts[1]) == [LATE, "found"]
    assert last_note(outcome.model.prompts[1]) == template.CLOSING_NOTE
    assert log_of(outcome, "CALL slow")["status"] == "error"
    assert [item["status"] for item in outcome.variables["tool_runs"]] == ["error", "ok"]


@pytest.mark.parametrize("late", [0, side_by_side.GRACE_SECONDS], ids=["ends", "holds its slot until all is over"])
def test_a_call_that_waits_for_a_slot_at_the_deadline_is_answered_and_logged_too(time: FakeTime, late: float) -> None:
    handlers = {"slow": silent(time, PAST + late), "search": replies("found")}
    turn = calls(("slow", {}), ("search", {}))

    outcome = run([turn, ANSWER], handlers, {**SHORT, "parallel_tool_calls": 1}, clock=time.clock)

    assert results_in(outcome.model.prompts[1]) == [LATE, LATE]
    assert [request["tool"] for request in outcome.tools.requests] == ["slow"]
    assert [log_of(outcome, f"CALL {name}")["status"] for name in handlers] == ["error", "error"]


def breaks_late(time: FakeTime) -> Iterator[Json]:
    """The SDK's own limit on silence strikes at the same time as ours: the failure counts as late."""
    yield text_message("half")
    time.advance(PAST)
    raise CallFails("kaboom")


def halts(time: FakeTime) -> Iterator[Json]:
    yield text_message("half")
    yield from silent(time, PAST)({})


@pytest.mark.parametrize("ends", [breaks_late, halts])
def test_output_of_a_slow_tool_before_the_deadline_is_kept(
    time: FakeTime, ends: Callable[[FakeTime], Iterator[Json]]
) -> None:
    outcome = run([search(), ANSWER], {"search": lambda _: ends(time)}, SHORT, clock=time.clock)

    assert results_in(outcome.model.prompts[1]) == [f"{LATE}\n\nhalf"]


def test_a_model_that_stays_silent_until_the_deadline_brings_the_closing_answer(time: FakeTime) -> None:
    outcome = run([search(), [silence(time, PAST)], ANSWER], FOUND, SHORT, clock=time.clock)

    assert (outcome.text, outcome.stop_reason) == ("Done.", "time_limit")
    assert outcome.logs["round2.model"]["status"] == "error"


STREAMS: dict[str, tuple[list[Any], tuple[str, str]]] = {
    "hidden thoughts without end": ([text("<think>hm"), 28, text(" and hm")], ("Done.", "time_limit")),
    "text that was held back": ([text("The answer is 42"), 28, text(".")], ("Done.", "time_limit")),
    # An answer that is already showing has the time of the closing call.
    "an answer that is shown": ([text("x" * 400), 28, *says(" and done.")], ("x" * 400 + " and done.", "answered")),
}


@pytest.mark.parametrize(("stream", "end"), STREAMS.values(), ids=STREAMS)
def test_a_stream_that_passes_the_deadline(stream: list[Any], end: tuple[str, str]) -> None:
    time = FakeTime()
    steps = [partial(time.advance, each) if isinstance(each, int) else each for each in stream]

    outcome = run([steps, ANSWER], FOUND, SHORT, clock=time.clock, expect_all_steps=False)

    assert (outcome.text, outcome.stop_reason) == end


def test_an_answer_that_never_ends_is_kept_as_far_as_it_came() -> None:
    time = FakeTime()
    endless = [text("x" * 400), lambda: time.advance(31), text("y"), text("z")]

    outcome = run([endless], FOUND, SHORT, clock=time.clock)

    assert outcome.error is None
    shown = {cut_off("x" * 400), cut_off("x" * 400 + "y")}
    assert outcome.text in shown, "a chunk that is there when the time is up may be read or not"
    assert outcome.stop_reason == "time_limit"


SILENT = CallFails("invocation exited without response after 250 seconds")
READ_TIMEOUT = CallFails(
    "read llm model failed: read tcp 127.0.0.1:39898->127.0.0.1:5062: use of closed network connection\n"
    "failed to read system header"
)


STALLS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "the limit on silence": ([[text("The answer is"), SILENT]], {}),
    "the daemon's read timeout": ([[text("The answer is"), READ_TIMEOUT]], {}),
    "three times, before it is shown": ([[text("The answer is"), SILENT]] * 3, FOUND),
}


@pytest.mark.parametrize(("steps", "handlers"), STALLS.values(), ids=STALLS)
def test_an_answer_that_stalls_keeps_its_text(steps: list[Any], handlers: dict[str, Any]) -> None:
    outcome = run(steps, handlers, clock=FakeTime().clock)

    assert outcome.error is None
    assert (outcome.text, outcome.stop_reason) == (cut_off("The answer is"), "time_limit")
    assert len([note for note in outcome.notes if note.endswith("the part of the answer that came is kept")]) == 1


def test_text_before_a_call_is_not_the_answer() -> None:
    turn = [text("Let me look."), asks(entry("c1", "search", '{"q"')), SILENT]

    outcome = run([turn] * 3, FOUND, clock=FakeTime().clock)

    assert type(outcome.error).__name__ == "InvokeConnectionError"


def test_words_that_were_held_back_at_the_deadline_are_the_answer_if_the_closing_call_says_nothing() -> None:
    time = FakeTime()
    stalls = [text("The answer is 42"), lambda: time.advance(28), text(".")]
    silent = [lambda: time.advance(10), text("")]

    outcome = run([stalls, silent], FOUND, SHORT, clock=time.clock)

    assert outcome.error is None
    assert (outcome.text.replace("42.", "42"), outcome.stop_reason) == (cut_off("The answer is 42"), "time_limit")


def test_a_silent_closing_call_ends_in_a_sentence(time: FakeTime) -> None:
    steps = [[*search(), lambda: time.advance(PAST)], [silence(time, loop.MIN_CLOSING_SECONDS)]]

    outcome = run(steps, FOUND, SHORT, clock=time.clock)

    assert outcome.error is None
    assert (outcome.text, outcome.stop_reason) == (user_texts.NO_ANSWER["time_limit"]["en"], "time_limit")
    assert outcome.logs["closing.model"]["status"] == "error"


def test_corrections_of_a_closing_answer_get_no_more_time_than_the_closing_answer(time: FakeTime) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    wrong = [lambda: time.advance(4), *submits({"n": "none"})]
    steps = [[*search(), lambda: time.advance(40)], wrong, wrong, wrong]
    began = time.now
    params = {**SHORT, "answer_schema": json.dumps(schema)}

    outcome = run(steps, FOUND, params, clock=time.clock, expect_all_steps=False)

    assert outcome.error is None
    assert outcome.stop_reason == "time_limit"
    assert time.now - began <= 40 + 4 + loop.MIN_CLOSING_SECONDS


ENDLESS = {
    "text": text_message("and on "),
    "files": {"type": "image_link", "message": {"text": "/files/tools/1.png"}, "meta": {"tool_file_id": "1"}},
}


@pytest.mark.parametrize("message", ENDLESS.values(), ids=ENDLESS)
def test_a_tool_that_never_stops_sending_is_given_up_at_the_deadline(message: Json, time: FakeTime) -> None:
    over = Event()

    def endless(_request: Json) -> Iterator[Json]:
        for number in count():
            if number == 1000:
                time.advance(PAST)
            if over.is_set():
                return
            yield message

    try:
        with Timeout(PATIENCE):
            outcome = run([search(), ANSWER], {"search": endless}, SHORT, clock=time.clock)
    finally:
        over.set()

    assert results_in(outcome.model.prompts[1])[0].startswith(LATE)
    assert (outcome.stop_reason, outcome.variables["tool_runs"][0]["status"]) == ("time_limit", "error")
    assert "time_limit" in log_of(outcome, "ENDED")["label"]


SILENCE = 250
"""Seconds: MAX_INVOCATION_TIMEOUT, unless the host sets another."""


def test_a_silent_tool_is_given_up_after_the_limit_on_silence_and_the_others_go_on(time: FakeTime) -> None:
    handlers = {"slow": silent(time, SILENCE), "search": replies("found")}

    outcome = run([calls(("slow", {}), ("search", {})), ANSWER], handlers, clock=time.clock)

    assert outcome.error is None
    assert (outcome.text, outcome.stop_reason) == ("Done.", "answered")
    assert results_in(outcome.model.prompts[1]) == [LATE, "found"]
    assert [request["tool"] for request in outcome.tools.requests] == ["slow", "search"]
    assert log_of(outcome, "CALL slow")["error"] == "invocation exited without response after 250 seconds"


def test_a_model_call_that_is_silent_too_long_is_retried(time: FakeTime) -> None:
    outcome = run([[silence(time, SILENCE)], ANSWER], FOUND, clock=time.clock)

    assert (outcome.text, outcome.stop_reason) == ("Done.", "answered")
    assert time.slept == [1.0]
