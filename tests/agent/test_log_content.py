"""``LOG_CONTENT=off``: the log has names, sizes and kinds, and quotes no user, model, tool or host."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from internal.errors import OurWords, Quoting
from internal.plan_and_reflect import PLAN_AND_REFLECT
from internal.render.log import LogContent, size_of
from tests.agent.scenes import ANSWER, log_of
from tests.support.host import CallFails, Handler
from tests.support.run import Outcome, run
from tests.support.wire import breaks, calls, json_message, model, replies, says

OFF = {"LOG_CONTENT": "off"}
WORD = "Marmalade"
"""Part of every text in these runs."""


def all_logs(outcome: Outcome) -> str:
    return json.dumps(outcome.bodies("log"), ensure_ascii=False)


def source(content: str) -> dict[str, Any]:
    return {"title": f"{WORD} page", "content": content, "metadata": {"document_id": "d", "score": 0.5}}


HANDLERS: dict[str, Handler] = {
    "search": replies(f"{WORD} is found", json_message({"answer": WORD})),
    "look": breaks(f"{WORD} is rate limited: 429 Too Many Requests"),
}
TALK: list[list[Any]] = [
    calls(("search", {"q": WORD, "deep": {WORD: 1}}), ("look", {"q": WORD}), text=f"<think>{WORD}</think>{WORD}!"),
    calls(("search", '{"q": "' + WORD), ("search", {"q": 4711})),
    says(f"{WORD} [1]"),
]


def talk(environment: Mapping[str, str], **params: object) -> Outcome:
    return run(TALK, HANDLERS, params, environment=environment)


def silent_run(**params: object) -> Outcome:
    return talk(OFF, query=WORD, context=[source(WORD)], **params)


def test_the_log_quotes_nothing() -> None:
    outcome = silent_run(allowed_tools=f"search, look, {WORD}", prompt_policy_overrides=json.dumps({WORD: "x"}))

    assert outcome.error is None
    assert WORD not in all_logs(outcome)
    assert "4711" not in all_logs(outcome)
    assert WORD in outcome.text


def test_the_log_has_names_sizes_kinds_and_numbers() -> None:
    outcome = silent_run()

    model_row, call = outcome.logs["round1.model"], outcome.logs["round1.call2"]
    assert call["label"] == "CALL look"
    assert call["data"]["arguments"] == {"q": "9 characters"}
    assert (call["status"], call["error"]) == ("error", "rate limited")
    assert call["data"]["status"] == "error"
    assert model_row["data"]["tool_calls"] == ["search", "look"]
    assert model_row["data"]["finish_reason"] == "tool_calls"
    assert model_row["data"]["thought"] == "9 characters"
    assert model_row["data"]["prompt_tokens"] == 10
    assert model_row["metadata"]["total_tokens"] == 15
    assert outcome.logs["round2.call1"]["data"]["arguments"] == "16 characters"
    assert outcome.logs["round2.call1"]["error"] == "not run"
    assert outcome.logs["summary"]["data"]["rounds"] == 3
    assert [run["tool"] for run in outcome.logs["summary"]["data"]["tool_calls"]] == [
        "search",
        "look",
        "search",
        "search",
    ]


def test_names_that_the_model_invented_are_no_names() -> None:
    invented = calls((WORD, {"q": "a"}), ("search", {"q": "a", WORD: 1}), text="Hm.")
    closing = calls((f"{WORD}2", {}))

    outcome = run([invented, closing, ANSWER], HANDLERS, environment=OFF)

    assert WORD not in all_logs(outcome)
    unknown, known = outcome.logs["round1.call1"], outcome.logs["round1.call2"]
    assert unknown["label"] == "CALL a name of 9 characters"
    assert known["label"] == "CALL search"
    assert known["data"]["arguments"] == {"q": "1 character", "a name of 9 characters": "1 character"}
    assert outcome.logs["round1.model"]["data"]["tool_calls"] == ["a name of 9 characters", "search"]
    assert outcome.logs["round1"]["data"]["assistant"] == "3 characters"


def test_an_argument_that_is_not_text_is_shown_by_its_size() -> None:
    outcome = run([calls(("search", {"q": 4711})), ANSWER], HANDLERS, environment=OFF)

    assert log_of(outcome, "CALL search")["data"]["arguments"] == {"q": "4 characters"}


def test_a_plans_subtasks_are_numbered_not_quoted() -> None:
    steps = [
        calls(("submit_plan", {"subtasks": [WORD]})),
        says(WORD),
        calls(("submit_reflection", {"is_completed": False, "advice": WORD})),
        says(WORD),
        calls(("submit_reflection", {"is_completed": True, "advice": WORD})),
        says(WORD),
    ]

    outcome = run(steps, {}, blueprint=PLAN_AND_REFLECT, environment=OFF)

    assert WORD not in all_logs(outcome)
    assert outcome.logs["subtask1"]["label"] == "SUBTASK 1"
    assert outcome.logs["plan"]["data"]["subtasks"] == ["9 characters"]
    assert outcome.logs["subtask1"]["data"]["completed"] is True
    assert run(steps, {}, blueprint=PLAN_AND_REFLECT).logs["subtask1"]["label"] == f"1. {WORD}"


def test_an_error_of_the_model_is_shown_by_its_kind() -> None:
    outcome = run([[CallFails(f"PluginInvokeError: {WORD} unauthorized")]], HANDLERS, environment=OFF)

    assert outcome.error is not None
    assert WORD not in all_logs(outcome)
    assert outcome.logs["round1.model"]["error"] == "unauthorized"
    assert outcome.logs["round1"]["error"] == "unauthorized"


def test_a_note_that_quotes_nothing_stays() -> None:
    content = LogContent(is_shown=False)

    assert content.words(OurWords("tried again")) == "tried again"
    assert content.words(Quoting("unknown key 'Marmalade'")) == "23 characters"
    assert content.error(OurWords("not run")) == "not run"
    assert content.error("rate limited: Marmalade") == "rate limited"
    assert content.error("Marmalade") == "unknown error"


COMMA_MISSING = "Expecting ',' delimiter: line 1 column 13 (char 12)"
NOTES: dict[str, tuple[dict[str, Any], str]] = {
    "a stop word": (
        {"model": {**model(), "completion_params": {"stop": [WORD]}}},
        "model: the completion parameter 'stop' is dropped, since it would discard tool calls",
    ),
    "not a number": ({"maximum_seconds": WORD}, "maximum_seconds: not a number; 540 is used"),
    "not a switch": (
        {"emit_intermediate_thoughts": WORD},
        "emit_intermediate_thoughts: neither true nor false; false is used",
    ),
    "an item": ({"files": [WORD]}, "files: item 1 cannot be read and is left out"),
    "a message": (
        {"model": {**model(), "history_prompt_messages": [WORD]}},
        "model: message 1 of the history cannot be read and is left out",
    ),
    "a policy": (
        {"prompt_policy_overrides": json.dumps({"extra_policy": [WORD]})},
        "prompt_policy_overrides: 'extra_policy' is neither text nor false and is ignored",
    ),
    "broken JSON": (
        {"prompt_policy_overrides": f'["{WORD}"'},
        f"prompt_policy_overrides: starts like JSON but is not valid ({COMMA_MISSING}); used as extra policy text",
    ),
    "a tool": ({"allowed_tools": "search"}, "tool 'look' is left out: not among the allowed tools"),
}


@pytest.mark.parametrize(("params", "note"), NOTES.values(), ids=NOTES)
def test_a_note_about_the_node_stays_unless_it_quotes(params: dict[str, Any], note: str) -> None:
    outcome = run([says("Done.")], HANDLERS, params, environment=OFF)

    assert note in outcome.notes
    assert WORD not in all_logs(outcome)


def test_a_note_about_a_tools_output_stays_unless_it_quotes() -> None:
    handlers: dict[str, Handler] = {
        "search": replies(WORD * 300_000),
        "look": replies({"type": WORD, "message": {"text": WORD}, "meta": {}}),
    }

    outcome = run([calls(("search", {"q": WORD}), ("look", {"q": WORD})), says("Done.")], handlers, environment=OFF)

    length = f"{len(WORD) * 300_000:,}"
    kept = f"search: of its {length} characters of text only the beginning and the end were kept"
    assert kept in outcome.notes
    assert f"{len(f'look: a message of the unknown type {WORD!r} was passed over')} characters" in outcome.notes
    assert WORD not in all_logs(outcome)


def test_a_note_about_the_answer_in_a_schema_stays() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    answer = calls(("submit_answer", {"n": 2**53 + 1}))

    outcome = run([answer], {}, {"answer_schema": json.dumps(schema)}, environment=OFF)

    assert "structured_output: the host rounds 1 integer above 2^53; the answer's text is exact" in outcome.notes


def test_contents_are_shown_unless_the_environment_says_otherwise() -> None:
    assert WORD in all_logs(talk({}))
    assert WORD in all_logs(talk({"LOG_CONTENT": "on"}))


@pytest.mark.parametrize(
    ("value", "size"), [("a", "1 character"), ({"a": 1}, "8 characters"), ("é" * 1_200, "1,200 characters")]
)
def test_sizes_are_characters_of_the_text_or_of_its_json(value: object, size: str) -> None:
    assert size_of(value) == size


def test_the_log_of_a_run_is_as_long_with_contents_as_without() -> None:
    shown, silent = talk({}), talk(OFF)

    assert list(shown.logs) == list(silent.logs)
    assert [log["status"] for log in shown.logs.values()] == [log["status"] for log in silent.logs.values()]
    assert shown.text == silent.text
