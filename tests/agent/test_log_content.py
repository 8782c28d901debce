"""``LOG_CONTENT=off``: the log has names, sizes and kinds, and quotes no user, model, tool or host."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from internal.errors import OurWords, Quoting
from internal.plan_and_reflect import PLAN_AND_REFLECT
from internal.render.log import LogContent
from tests.support.host import CallFails, Handler
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER
from tests.support.wire import breaks, calls, json_message, model, replies, says

OFF = {"LOG_CONTENT": "off"}
WORD = "Marmalade"
"""Part of every text in these runs."""


def all_logs(outcome: Outcome) -> str:
    return json.dumps(outcome.bodies("log"), ensure_ascii=False)


HANDLERS: dict[str, Handler] = {
    "search": replies(f"{WORD} is found", json_message({"answer": WORD})),
    "look": breaks(f"{WORD} is rate limited: 429 Too Many Requests"),
}
TALK: list[list[Any]] = [
    calls(("search", {"q": WORD, "deep": {WORD: 1}}), ("look", {"q": WORD}), text=f"<think>{WORD}</think>{WORD}!"),
    calls(("search", '{"q": "' + WORD), ("search", {"q": 4711})),
    says(f"{WORD} [1]"),
]
SOURCE = {"title": f"{WORD} page", "content": WORD, "metadata": {"document_id": "d", "score": 0.5}}


def talk(environment: Mapping[str, str]) -> Outcome:
    params = {
        "query": WORD,
        "context": [SOURCE],
        "allowed_tools": f"search, look, {WORD}",
        "prompt_policy_overrides": json.dumps({WORD: "x"}),
    }
    return run(TALK, HANDLERS, params, environment=environment)


def test_the_log_quotes_nothing() -> None:
    outcome = talk(OFF)

    assert outcome.error is None
    assert WORD in outcome.text
    assert WORD not in all_logs(outcome)
    assert "4711" not in all_logs(outcome)
    turn, call = outcome.logs["round1.model"], outcome.logs["round1.call2"]
    assert call["label"] == "CALL look"
    assert call["data"]["arguments"] == {"q": "9 characters"}
    assert (call["status"], call["error"], call["data"]["status"]) == ("error", "rate limited", "error")
    assert (turn["data"]["tool_calls"], turn["data"]["finish_reason"]) == (["search", "look"], "tool_calls")
    assert (turn["data"]["thought"], turn["data"]["prompt_tokens"]) == ("9 characters", 10)
    assert turn["metadata"]["total_tokens"] == 15
    assert (outcome.logs["round2.call1"]["data"]["arguments"], outcome.logs["round2.call1"]["error"]) == (
        "16 characters",
        "not run",
    )
    assert outcome.logs["round2.call2"]["data"]["arguments"] == {"q": "4 characters"}
    summary = outcome.logs["summary"]["data"]
    assert (summary["rounds"], summary["tool_calls"][1]["tool"]) == (3, "look")


@pytest.mark.parametrize("environment", [{}, {"LOG_CONTENT": "on"}], ids=repr)
def test_contents_are_shown_unless_the_environment_says_otherwise(environment: Mapping[str, str]) -> None:
    shown, silent = talk(environment), talk(OFF)

    assert WORD in all_logs(shown)
    assert [(key, log["status"]) for key, log in shown.logs.items()] == [
        (key, log["status"]) for key, log in silent.logs.items()
    ]
    assert shown.text == silent.text


def test_names_that_the_model_invented_are_no_names() -> None:
    invented = calls((WORD, {"q": "a"}), ("search", {"q": "a", WORD: 1}), text="Hm.")

    outcome = run([invented, calls((f"{WORD}2", {})), ANSWER], HANDLERS, environment=OFF)

    assert WORD not in all_logs(outcome)
    unknown, known = outcome.logs["round1.call1"], outcome.logs["round1.call2"]
    assert (unknown["label"], known["label"]) == ("CALL a name of 9 characters", "CALL search")
    assert known["data"]["arguments"] == {"q": "1 character", "a name of 9 characters": "1 character"}
    assert outcome.logs["round1.model"]["data"]["tool_calls"] == ["a name of 9 characters", "search"]
    assert outcome.logs["round1"]["data"]["assistant"] == "3 characters"


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
    assert {outcome.logs[key]["error"] for key in ("round1", "round1.model")} == {"unauthorized"}


def test_a_sentence_that_quotes_nothing_stays() -> None:
    content = LogContent(is_shown=False)

    assert content.words(OurWords("tried again")) == "tried again"
    assert content.words(Quoting("unknown key 'Marmalade'")) == "23 characters"
    assert content.error(OurWords("not run")) == "not run"
    assert content.error("rate limited: Marmalade") == "rate limited"
    assert content.error("Marmalade") == "unknown error"


NOTES: dict[str, tuple[dict[str, Any], str]] = {
    "a stop word": (
        {"model": {**model(), "completion_params": {"stop": [WORD]}}},
        "model: the completion parameter 'stop' is dropped, since it would discard tool calls",
    ),
    "not a number": ({"maximum_seconds": WORD}, "maximum_seconds: not a number; 540 is used"),
    "a message": (
        {"model": {**model(), "history_prompt_messages": [WORD]}},
        "model: message 1 of the history cannot be read and is left out",
    ),
    "a policy": (
        {"prompt_policy_overrides": json.dumps({"extra_policy": [WORD]})},
        "prompt_policy_overrides: 'extra_policy' is neither text nor false and is ignored",
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
    assert f"search: of its {length} characters of text only the beginning and the end were kept" in outcome.notes
    assert f"{len(f'look: a message of the unknown type {WORD!r} was passed over')} characters" in outcome.notes
    assert WORD not in all_logs(outcome)
