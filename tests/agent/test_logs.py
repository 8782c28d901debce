"""The log tree: parents, labels, statuses, costs, icons and notes; ``LOG_CONTENT=off`` quotes nothing."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from internal.agent import FUNCTION_CALLING, run_agent
from internal.plan_and_reflect import PLAN_AND_REFLECT
from internal.render.log import MAX_PROVIDERS
from tests.support.host import CallFails, Handler, Json, ScriptedModel, Tools, make_session
from tests.support.node import SdkLines
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, FOUND, log_of, search
from tests.support.wire import USAGE, breaks, calls, json_message, model, parameter, replies, says, tool

HANDLERS = {**FOUND, "look": breaks("kaboom")}
COST = "1,005 tokens, 0.0013 USD"
"""Of a scripted turn."""


def two_rounds() -> Outcome:
    return run([calls(("search", {"q": "a"}), ("look", {})), search("b"), ANSWER], HANDLERS, {"maximum_iterations": 2})


def test_a_row_is_opened_before_it_is_finished_and_no_two_runs_share_an_id() -> None:
    """tests/agent/conversations has whole trees."""
    outcome = two_rounds()
    other = two_rounds()

    for key, log in outcome.logs.items():
        states = [body for body in outcome.bodies("log") if body["id"] == log["id"]]
        assert len({(state["parent_id"], state["label"]) for state in states}) == 1
        if key != "summary":
            assert [state["status"] for state in states] == ["start", log["status"]]
            assert isinstance(log["metadata"]["elapsed_time"], int | float)
    assert {key for key, log in outcome.logs.items() if log["status"] == "error"} == {"round1", "round1.call2"}
    assert not {body["id"] for body in outcome.bodies("log")} & {body["id"] for body in other.bodies("log")}


def test_a_round_says_what_the_model_said_its_calls_their_results_and_its_cost() -> None:
    found = f"found{'.' * 9_000}"
    refused = ("search", '{"q": ')
    first = calls(("search", {"q": "a"}), ("look", {}), refused, text="I look around.")

    outcome = run([first, ANSWER], {**HANDLERS, "search": replies(found)})

    round1 = outcome.logs["round1"]
    assert (
        list(round1["data"])
        == sorted(round1["data"])
        == [
            "assistant",
            "calls",
            "cost",
            "error",
            "failed_calls",
        ]
    )
    assert (round1["status"], round1["error"]) == ("error", "2 of 3 calls failed")
    assert (round1["data"]["assistant"], round1["data"]["cost"]) == ("I look around.", COST)
    assert round1["data"]["failed_calls"] == 2
    listed = round1["data"]["calls"]
    assert [(call["call"], call["status"]) for call in listed] == [
        ('search {"q": "a"}', "ok"),
        ("look {}", "error"),
        ('search {"q": ', "refused"),
    ]
    assert listed[0]["result"] == found[:300]
    assert listed[1]["result"].endswith("kaboom")
    assert round1["metadata"]["total_tokens"] == USAGE["total_tokens"]
    assert outcome.logs["round2"]["data"] == {"assistant": "Done.", "cost": COST}
    call = outcome.logs["round1.call3"]
    assert (call["data"]["arguments"], call["status"]) == (refused[1], "error")
    assert call["data"]["tool_response"].startswith("tool arguments parse error")


def test_attempts_and_subtasks_sum_up_their_rounds() -> None:
    plan: list[list[Any]] = [
        calls(("submit_plan", {"subtasks": ["one"]})),
        search("a"),
        says("Found."),
        calls(("submit_reflection", {"is_completed": True, "advice": ""})),
        ANSWER,
    ]

    outcome = run(plan, {"search": breaks("kaboom")}, blueprint=PLAN_AND_REFLECT)

    for key in ("subtask1.attempt1", "subtask1"):
        assert outcome.logs[key]["metadata"]["total_tokens"] == 3 * USAGE["total_tokens"]
        assert outcome.logs[key]["data"]["failed_calls"] == 1
    assert outcome.logs["plan"]["metadata"]["total_tokens"] == USAGE["total_tokens"]


def test_notes_of_the_set_up_are_in_the_last_row_even_of_a_run_that_fails() -> None:
    odd = {"tools": [tool("search", parameter("f", "hologram"))]}
    note = "tool 'search': parameter 'f' is left out: a model cannot fill in the type 'hologram'"

    ended = run([ANSWER], HANDLERS, odd)
    failed = run([[CallFails("no")]], HANDLERS, odd)

    assert run([ANSWER], HANDLERS).notes == []
    assert next(iter(ended.logs)) == next(iter(failed.logs)) == "round1"
    assert ended.logs["summary"]["data"]["notes"] == [note]
    assert list(failed.logs)[-1] == "notes"
    assert failed.logs["notes"]["data"]["notes"] == [note]


def test_a_row_has_the_ids_of_its_requests_from_the_start_and_a_call_the_models_id() -> None:
    steps = [[CallFails("429 rate limit")], calls(("search", {"q": "a"}), ("search", {"x": 1})), ANSWER]

    outcome = run(steps, {"search": breaks("429 rate limit")})

    rows = [outcome.logs[key]["data"] for key in ("round1.model", "round1.call1", "round2.model")]
    assert [each for row in rows for each in row["request_ids"]] == outcome.transport.request_ids
    assert [len(row["request_ids"]) for row in rows] == [2, 1, 1]
    started = [body for body in outcome.bodies("log") if body["status"] == "start" and "request_ids" in body["data"]]
    assert [len(body["data"]["request_ids"]) for body in started] == [1, 2, 1, 1]
    refused = outcome.logs["round1.call2"]["data"]
    assert "request_ids" not in refused
    assert (rows[1]["tool_call_id"], refused["tool_call_id"]) == ("call_1", "call_2")


def test_previews_of_any_value_stay_small() -> None:
    arguments = {"q": "a" * 9_000}
    long_names = {f"key{number}": "v" for number in range(5_000)}
    handlers = {"search": replies("r" * 15_000, {"type": "json", "message": {"json_object": long_names}, "meta": None})}

    outcome = run([calls(("search", arguments), text="t" * 9_000), ANSWER], handlers)

    assert max(len(json.dumps(log["data"])) for log in outcome.logs.values()) < 10_000
    assert max(len(log["label"]) for log in outcome.logs.values()) <= 120


# Icons, for each of which Dify may look into its list of plugins while the stream waits.

ASSET = "3f2a9c.svg"


def named_providers(outcome: Outcome) -> list[str]:
    """The providers of the rows by which Dify looks an icon up: those that are finished."""
    finished = [log for log in outcome.bodies("log") if log["status"] != "start"]
    return [log["metadata"]["provider"] for log in finished if "provider" in (log["metadata"] or {})]


def with_icon(icon: object, provider: str = "acme/tools/tools") -> Json:
    described = tool("search", parameter("q"), provider=provider)
    described["identity"]["icon"] = icon
    return described


def test_only_the_first_row_of_a_tool_names_its_provider_and_no_row_of_a_model() -> None:
    rounds = [calls(("search", {"q": str(number)}), ("look", {"q": str(number)})) for number in range(3)]

    outcome = run([*rounds, ANSWER], {**FOUND, "look": replies("seen")})

    assert named_providers(outcome) == ["acme/tools/tools"] * 2
    assert all("provider" in outcome.logs[key]["metadata"] for key in ("round1.call1", "round1.call2"))


def test_a_run_makes_dify_look_for_icons_at_most_so_often() -> None:
    names = [f"search{number}" for number in range(30)]
    params = {"tools": [tool(name, parameter("q")) for name in names]}

    outcome = run([calls(*((name, {"q": "a"}) for name in names)), ANSWER], dict.fromkeys(names, replies("x")), params)

    assert len(named_providers(outcome)) == MAX_PROVIDERS == 20


@pytest.mark.parametrize(
    ("icon", "provider", "is_shown"),
    [
        *((icon, "acme/tools/tools", True) for icon in (ASSET, "https://a.example/icon?size=32", "HTTP://a.example/i")),
        *((icon, "acme/tools/tools", False) for icon in (None, "", {"content": "🔧"}, "icon", "../a.svg", "🔧")),
        *((icon, "acme/tools/tools", False) for icon in ("javascript:alert(1)", "a.exe")),
        (ASSET, "time", False),  # not a plugin's
    ],
)
def test_an_icon_that_the_log_view_can_show_costs_no_look_up(icon: object, provider: str, *, is_shown: bool) -> None:
    outcome = run([search(), ANSWER], FOUND, {"tools": [with_icon(icon, provider)]})

    metadata = log_of(outcome, "CALL search")["metadata"]
    assert {"icon": metadata.get("icon"), "provider": metadata.get("provider")} == (
        {"icon": icon, "provider": None} if is_shown else {"icon": None, "provider": provider}
    )


def test_the_icon_is_on_the_wire_as_the_sdk_writes_it() -> None:
    """The SDK's enum of metadata keys has no icon; pytest turns any warning of its serialisation into an error."""
    scripted = ScriptedModel([search(), ANSWER])
    tools = Tools(FOUND)
    writer = SdkLines()
    session, _ = make_session(scripted, tools)
    parameters = {"model": model(), "query": "?", "tools": [with_icon(ASSET)]}

    for message in run_agent(parameters, session, FUNCTION_CALLING):
        writer.session_message("session", writer.stream_object(data=message))

    logs = [line["data"]["data"]["message"] for line in writer.lines if line["data"]["data"]["type"] == "log"]
    icons = {log["label"]: log["metadata"]["icon"] for log in logs if "icon" in (log["metadata"] or {})}
    assert icons == {"CALL search": ASSET}
    assert set(logs[0]) == {"id", "label", "parent_id", "error", "status", "data", "metadata"}


OFF = {"LOG_CONTENT": "off"}
WORD = "Marmalade"
"""Part of every text in these runs."""


def all_logs(outcome: Outcome) -> str:
    return json.dumps(outcome.bodies("log"), ensure_ascii=False)


WORDY: dict[str, Handler] = {
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
    return run(TALK, WORDY, params, environment=environment)


def test_the_log_quotes_nothing() -> None:
    outcome = talk(OFF)

    assert outcome.error is None
    assert WORD in outcome.text
    assert WORD not in all_logs(outcome)
    assert "4711" not in all_logs(outcome)
    turn = outcome.logs["round1.model"]
    call = outcome.logs["round1.call2"]
    assert call["label"] == "CALL look"
    assert call["data"]["arguments"] == {"q": "9 characters"}
    assert (call["status"], call["error"], call["data"]["status"]) == ("error", "rate limited", "error")
    assert (turn["data"]["tool_calls"], turn["data"]["finish_reason"]) == (["search", "look"], "tool_calls")
    assert (turn["data"]["thought"], turn["data"]["prompt_tokens"]) == ("9 characters", 1_000)
    assert turn["metadata"]["total_tokens"] == USAGE["total_tokens"]
    assert (outcome.logs["round2.call1"]["data"]["arguments"], outcome.logs["round2.call1"]["error"]) == (
        "16 characters",
        "not run",
    )
    assert outcome.logs["round2.call2"]["data"]["arguments"] == {"q": "4 characters"}
    summary = outcome.logs["summary"]["data"]
    assert (summary["rounds"], summary["tool_calls"][1]["tool"]) == (3, "look")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("FinishReason.STOP", "STOP"),
        ("end_turn", "end_turn"),
        (f"stopped at {WORD}", "20 characters"),
        (WORD, "9 characters"),
    ],
)
def test_of_a_finish_reason_the_log_quotes_only_the_usual_words(said: str, shown: str) -> None:
    outcome = run([says("Yes.", finish_reason=said)], environment=OFF)

    assert outcome.logs["round1.model"]["data"]["finish_reason"] == shown


@pytest.mark.parametrize(("said", "shown"), [(WORD, "USD"), (f"EUR {WORD}", "USD"), ("EUR", "EUR"), ("", "USD")])
def test_a_currency_is_a_code_and_quotes_no_text(said: str, shown: str) -> None:
    outcome = run([says("Yes.", usage={**USAGE, "currency": said, "total_price": "1"})], environment=OFF)

    assert WORD not in json.dumps(outcome.messages)
    assert outcome.logs["round1.model"]["metadata"]["currency"] == shown
    assert outcome.last_json["execution_metadata"]["currency"] == shown


@pytest.mark.parametrize("environment", [{}, {"LOG_CONTENT": "on"}], ids=repr)
def test_contents_are_shown_unless_the_environment_says_otherwise(environment: Mapping[str, str]) -> None:
    shown = talk(environment)
    silent = talk(OFF)

    assert WORD in all_logs(shown)
    assert [(key, log["status"]) for key, log in shown.logs.items()] == [
        (key, log["status"]) for key, log in silent.logs.items()
    ]
    assert shown.text == silent.text


def test_names_that_the_model_invented_are_no_names() -> None:
    invented = calls((WORD, {"q": "a"}), ("search", {"q": "a", WORD: 1}), text="Hm.")

    outcome = run([invented, calls((f"{WORD}2", {})), ANSWER], WORDY, environment=OFF)

    assert WORD not in all_logs(outcome)
    unknown = outcome.logs["round1.call1"]
    known = outcome.logs["round1.call2"]
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
    outcome = run([[CallFails(f"PluginInvokeError: {WORD} unauthorized")]], WORDY, environment=OFF)

    assert outcome.error is not None
    assert WORD not in all_logs(outcome)
    assert {outcome.logs[key]["error"] for key in ("round1", "round1.model")} == {"unauthorized"}


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
    outcome = run([says("Done.")], WORDY, params, environment=OFF)

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
    assert f"{len(f'look: a message of the unknown type {WORD!r} was skipped')} characters" in outcome.notes
    assert WORD not in all_logs(outcome)
