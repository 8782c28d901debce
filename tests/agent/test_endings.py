"""How a run ends: limits, cut and empty turns, closing answers, and the reason it gives."""

from collections.abc import Sequence
from typing import Any

import pytest

from internal.memory.records import AnswerRecord
from internal.memory.state import decode
from prompt import template, user_texts
from tests.support.clock import FakeTime
from tests.support.host import CallFails
from tests.support.run import run
from tests.support.scenes import ANSWER, FOUND, cut_off, ends, last_note, log_of, search, text
from tests.support.wire import USAGE, calls, says

LIMIT = {"maximum_iterations": 2}
at_once_and_in_the_closing_answer = pytest.mark.parametrize("before", [[], [search("a"), search("b")]])


def test_at_the_iteration_limit_one_closing_answer_is_asked_for_in_which_no_call_runs() -> None:
    outcome = run([search("a"), search("b"), search("c", text="What I know.")], FOUND, LIMIT)

    assert (outcome.text, outcome.stop_reason) == ("What I know.", "iteration_limit")
    second, closing = outcome.model.requests[1:]
    assert closing["tools"] == second["tools"]
    assert last_note(closing["prompt_messages"]) == template.CLOSING_NOTE
    assert outcome.tool_results(2) == ["found"]
    assert len(outcome.tools.requests) == 2
    assert [item["status"] for item in outcome.variables["tool_runs"]] == ["ok", "ok", "refused"]
    assert log_of(outcome, "CLOSING ANSWER")["status"] == "success"
    assert outcome.logs["closing.call1"]["status"] == "error"


def test_an_answer_in_the_last_round_does_not_count_as_the_limit() -> None:
    outcome = run([search("a"), ANSWER], FOUND, LIMIT)

    assert (outcome.stop_reason, len(outcome.model.requests)) == ("answered", 2)


QUERIES = {
    "en": "What is it?",
    "ja": "これは何ですか",
    "ja in kanji and kana": "製品の価格を教えて",
    "zh": "产品价格是多少？",
    "pt": "Qual é o preço do produto?",
    "en elsewhere": "Что это?",
}


@pytest.mark.parametrize("language", QUERIES)
def test_what_the_user_reads_of_the_end_is_in_the_language_of_the_question(language: str) -> None:
    query = {"query": QUERIES[language]}

    none = run([search("a"), search("b"), search("c")], FOUND, {**LIMIT, **query})
    half = run([says("Half", finish_reason="length")], params=query)

    assert none.text == user_texts.NO_ANSWER["iteration_limit"][language[:2]]
    assert none.stop_reason == "iteration_limit"
    assert half.text == f"Half\n\n{user_texts.CUT_SHORT['length'][language[:2]]}"


FINISH_REASONS = {
    "length": "length",
    "max_tokens": "length",
    "MAX_TOKENS": "length",
    "FinishReason.MAX_TOKENS": "length",
    "incomplete": "length",
    "content_filter": "content_filter",
    "SAFETY": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}


@at_once_and_in_the_closing_answer
@pytest.mark.parametrize(("finish_reason", "reason"), FINISH_REASONS.items(), ids=FINISH_REASONS)
def test_a_cut_turn_says_so_and_is_never_empty(finish_reason: str, reason: str, before: list[Any]) -> None:
    empty = run([*before, [ends(finish_reason)]], FOUND, LIMIT)
    half = run([*before, [text("Half"), ends(finish_reason)]], FOUND, LIMIT)

    assert (empty.stop_reason, empty.text) == (reason, user_texts.NO_ANSWER[reason]["en"])
    assert (half.stop_reason, half.text) == (reason, cut_off("Half", reason))


def test_the_note_below_a_cut_answer_is_in_no_code_and_in_no_variable() -> None:
    outcome = run([says("Run:\n```sh\nls -", finish_reason="length")], params={"extra_outputs": "state"})

    assert outcome.text == cut_off("Run:\n```sh\nls -\n```", "length")
    state = decode(outcome.variables["state"])
    assert state
    assert state.entries[-1] == AnswerRecord(text="Run:\n```sh\nls -")


def test_an_answer_in_a_schema_has_no_such_note() -> None:
    schema = '{"type": "object", "properties": {"a": {"type": "string"}}}'

    assert run([says("Half", finish_reason="length")], params={"answer_schema": schema}).text == "Half"


@pytest.mark.parametrize("finish_reason", ["stop", "tool", "end_turn", None, "Non-JSON encountered."])
def test_any_other_finish_reason_is_an_answer(finish_reason: str | None) -> None:
    outcome = run([says("Done.", finish_reason=finish_reason)], FOUND)

    assert (outcome.stop_reason, outcome.text, outcome.notes) == ("answered", "Done.", [])


EMPTY: dict[str, list[Any]] = {
    "no text": says(),
    "blank text": says(" \n"),
    "a thought alone": says("<think>hm</think>\n"),
    "no finish reason": [text("", usage=USAGE)],
}


@at_once_and_in_the_closing_answer
@pytest.mark.parametrize("turn", EMPTY.values(), ids=EMPTY)
def test_an_empty_turn_does_not_count_as_answered(turn: list[Any], before: Sequence[Any]) -> None:
    turns = [turn] if turn == says("<think>hm</think>\n") else [turn, turn]

    outcome = run([*before, *turns], FOUND, LIMIT)

    assert (outcome.stop_reason, outcome.text) == ("empty", user_texts.NO_ANSWER["empty"]["en"])


NOTHING: dict[str, list[Any]] = {
    "no chunk": [],
    "chunks without content": [text(None), text(""), text([])],
    "usage alone": [text("", usage=USAGE)],
    "a finish reason alone": [ends()],
    "blank text": says(" \n"),
}


@at_once_and_in_the_closing_answer
@pytest.mark.parametrize("turn", NOTHING.values(), ids=NOTHING)
def test_a_turn_that_brings_nothing_is_asked_for_once_more(turn: list[Any], before: Sequence[Any]) -> None:
    """Gemini's plugin skips a chunk without content together with its finish reason."""
    outcome = run([*before, turn, ANSWER], FOUND, LIMIT, clock=FakeTime().clock)

    assert (outcome.error, outcome.text) == (None, "Done.")
    assert outcome.model.prompts[-1] == outcome.model.prompts[-2]
    assert sum("asked for once more" in note for note in outcome.notes) == 1


@pytest.mark.parametrize("language", ["en", "ja", "zh", "pt"])
@pytest.mark.parametrize("turn", NOTHING.values(), ids=NOTHING)
def test_where_nothing_comes_again_the_user_reads_that_a_filter_may_have_stopped_it(
    turn: list[Any], language: str
) -> None:
    time = FakeTime()
    query = {"en": "Hello there", "ja": "こんにちは", "zh": "你好，请问", "pt": "Olá, tudo bem?"}[language]

    outcome = run([turn, turn], FOUND, {"query": query}, clock=time.clock)

    assert (outcome.error, outcome.text) == (None, user_texts.NO_ANSWER["empty"][language])
    assert (outcome.stop_reason, time.slept) == ("empty", [])
    assert {"en": "filter", "ja": "フィルター", "zh": "过滤器", "pt": "filtro"}[language] in outcome.text


def test_where_nothing_comes_again_the_fallback_model_is_asked() -> None:
    outcome = run([[ends()], [ends()], ANSWER], FOUND, {"fallback_model": "acme/relay/relay/second"})

    assert (outcome.error, outcome.text) == (None, "Done.")
    assert [request["model"] for request in outcome.model.requests][-1] == "second"
    assert any("the model failed (nothing returned)" in note for note in outcome.notes)


def test_the_sentence_stands_apart_from_a_shown_thought() -> None:
    outcome = run([says("<think>hm</think>")], FOUND, {"emit_intermediate_thoughts": True})

    assert outcome.text == f"<think>\nhm\n</think>\n\n{user_texts.NO_ANSWER['empty']['en']}"


@pytest.mark.parametrize("finish_reason", ["length", "content_filter"])
def test_a_cut_turn_runs_none_of_its_calls_even_those_that_parse(finish_reason: str) -> None:
    turn = calls(("search", {"q": "x"}), ("search", '{"q": "y'), finish_reason=finish_reason, opaque_body={"a": 1})

    outcome = run([turn], FOUND)

    assert outcome.tools.requests == []
    assert (outcome.stop_reason, outcome.text) == (finish_reason, user_texts.NO_ANSWER[finish_reason]["en"])
    assert [item["status"] for item in outcome.variables["tool_runs"]] == ["refused", "refused"]


CLOSINGS: dict[str, tuple[list[Any], str, str]] = {
    "an answer": (ANSWER, "repeated_calls", "Done."),
    "another call": (search("c"), "repeated_calls", user_texts.NO_ANSWER["repeated_calls"]["en"]),
    "nothing": (says("<think>hm</think>"), "empty", user_texts.NO_ANSWER["empty"]["en"]),
}


@pytest.mark.parametrize(("turn", "reason", "shown"), CLOSINGS.values(), ids=CLOSINGS)
def test_repeated_calls_end_the_tool_phase_before_the_limit_does(turn: list[Any], reason: str, shown: str) -> None:
    outcome = run([*[search()] * 4, turn], FOUND, {"maximum_iterations": 4})

    assert (outcome.stop_reason, outcome.text) == (reason, shown)


def test_a_failing_closing_call_is_an_error_with_closed_logs() -> None:
    outcome = run([search("a"), search("b"), [CallFails("InvokeBadRequestError: no")]], FOUND, LIMIT)

    assert type(outcome.error).__name__ == "InvokeBadRequestError"
    assert "start" not in {log["status"] for log in outcome.logs.values()}
    assert outcome.logs["closing"]["status"] == "error"
