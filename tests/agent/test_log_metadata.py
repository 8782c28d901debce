"""The metadata of finished log rows: icons without look-ups, tokens, prices, failed calls."""

from typing import Any

import pytest

from internal import events as e
from internal.agent import FUNCTION_CALLING, run_agent
from internal.budget import Usage
from internal.call import RejectedCall, ToolCall
from internal.plan_and_reflect import PLAN_AND_REFLECT
from internal.render.log import MAX_PROVIDERS, LogContent, LogTree
from internal.text.secrets import KnownSecrets, Redactor
from tests.agent.scenes import ANSWER, log_of, search
from tests.support.host import Json, ScriptedModel, Tools, make_session
from tests.support.node import SdkLines
from tests.support.run import Outcome, run
from tests.support.wire import USAGE, breaks, calls, model, parameter, replies, says, tool

FOUND = {"search": replies("found")}
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
    tools = [tool(name, parameter("q")) for name in names]

    outcome = run(
        [calls(*((name, {"q": "a"}) for name in names)), ANSWER], dict.fromkeys(names, replies("x")), {"tools": tools}
    )

    assert len(named_providers(outcome)) == MAX_PROVIDERS == 20


@pytest.mark.parametrize("icon", [ASSET, "https://example.com/a/icon?size=32", "HTTP://example.com/i.PNG"])
def test_a_tool_that_brings_its_icon_shows_it_without_a_look_up(icon: str) -> None:
    outcome = run([search(), ANSWER], FOUND, {"tools": [with_icon(icon)]})

    metadata = log_of(outcome, "CALL search")["metadata"]
    assert metadata["icon"] == icon
    assert "provider" not in metadata
    assert isinstance(metadata["elapsed_time"], int | float)


@pytest.mark.parametrize(
    "icon",
    [None, "", {"content": "🔧", "background": "#fff"}, "icon", "../a.svg", "🔧", "javascript:alert(1)", "a.exe"],
)
def test_an_icon_that_the_log_view_cannot_show_is_replaced_by_the_provider(icon: object) -> None:
    outcome = run([search(), ANSWER], FOUND, {"tools": [with_icon(icon)]})

    metadata = log_of(outcome, "CALL search")["metadata"]
    assert metadata["provider"] == "acme/tools/tools"
    assert "icon" not in metadata


def test_a_file_name_is_used_only_for_a_provider_of_a_plugin() -> None:
    outcome = run([search(), ANSWER], FOUND, {"tools": [with_icon("icon.svg", provider="time")]})

    assert log_of(outcome, "CALL search")["metadata"]["provider"] == "time"


def test_the_icon_is_on_the_wire_as_the_sdk_writes_it() -> None:
    """The SDK's enum of metadata keys has no icon; pytest turns any warning of its serialisation into an error."""
    scripted, tools, writer = ScriptedModel([search(), ANSWER]), Tools(FOUND), SdkLines()
    session, _ = make_session(scripted, tools)
    parameters = {"model": model(), "query": "?", "tools": [with_icon(ASSET)]}

    for message in run_agent(parameters, session, FUNCTION_CALLING):
        writer.session_message("session-1", writer.stream_object(data=message))

    logs = [line["data"]["data"]["message"] for line in writer.lines if line["data"]["data"]["type"] == "log"]
    icons = {log["label"]: log["metadata"]["icon"] for log in logs if "icon" in (log["metadata"] or {})}
    assert icons == {"CALL search": ASSET}
    assert set(logs[0]) == {"id", "label", "parent_id", "error", "status", "data", "metadata"}


def test_a_round_sums_up_tokens_price_and_failed_calls() -> None:
    handlers = {"search": replies("found"), "look": breaks("kaboom")}
    refused = ("search", '{"q": ')

    outcome = run([calls(("search", {"q": "a"}), ("look", {}), refused), ANSWER], handlers)

    first = outcome.logs["round1"]
    assert first["data"]["failed_calls"] == 2
    assert first["metadata"]["total_tokens"] == USAGE["total_tokens"]
    assert first["metadata"]["total_price"] == float(USAGE["total_price"])
    assert first["metadata"]["currency"] == "USD"
    assert isinstance(first["metadata"]["elapsed_time"], int | float)


def test_a_round_without_failures_has_no_failed_calls() -> None:
    outcome = run([search(), ANSWER], FOUND)

    assert "failed_calls" not in outcome.logs["round1"]["data"]
    assert outcome.logs["round1"]["metadata"]["total_tokens"] == USAGE["total_tokens"]


def test_attempts_and_subtasks_sum_up_their_rounds() -> None:
    plan: list[list[Any]] = [
        calls(("submit_plan", {"subtasks": ["one"]})),
        search("a"),
        says("Found."),
        calls(("submit_reflection", {"is_completed": True, "advice": ""})),
        ANSWER,
    ]

    outcome = run(plan, {"search": breaks("kaboom")}, blueprint=PLAN_AND_REFLECT)

    attempt = outcome.logs["subtask1.attempt1"]
    assert attempt["metadata"]["total_tokens"] == 3 * USAGE["total_tokens"]
    assert attempt["data"]["failed_calls"] == 1
    assert outcome.logs["subtask1"]["metadata"]["total_tokens"] == 3 * USAGE["total_tokens"]
    assert outcome.logs["subtask1"]["data"]["failed_calls"] == 1
    assert outcome.logs["plan"]["metadata"]["total_tokens"] == USAGE["total_tokens"]


def test_a_call_that_a_failed_subtask_left_open_counts_as_failed() -> None:
    tree = LogTree(KnownSecrets(Redactor()), LogContent())
    events: list[e.LogEvent] = [
        e.SpanStarted("round1", "ROUND 1"),
        e.ToolStarted("round1.call1", RejectedCall(ToolCall("call_1", "search", "{}"), "")),
        e.SpanFinished("round1", 1.0, error="lost"),
    ]
    written = [message.model_dump(mode="json")["message"] for event in events for message in tree.messages(event)]

    assert written[-1]["data"] == {"failed_calls": 1, "error": "lost"}


def test_a_rows_key_alone_says_what_it_hangs_from_and_where_its_cost_counts() -> None:
    tree = LogTree(KnownSecrets(Redactor()), LogContent())
    usage = Usage(prompt_tokens=1, completion_tokens=2, total_tokens=3)
    events: list[e.LogEvent] = [
        e.SpanStarted("debate1", "DEBATE 1"),
        e.SpanStarted("debate1.judge", "JUDGE"),
        e.ModelStarted("debate1.judge.model", "m", "0"),
        e.ModelFinished("debate1.judge.model", 1.0, usage),
        e.SpanFinished("debate1.judge", 1.0),
        e.SpanFinished("debate1", 1.0),
    ]
    written = [message.model_dump(mode="json")["message"] for event in events for message in tree.messages(event)]
    top, judge, turn = written[:3]

    assert [row["parent_id"] for row in (top, judge, turn)] == [None, top["id"], judge["id"]]
    assert [row["metadata"]["total_tokens"] for row in written[3:]] == [3, 3, 3]
