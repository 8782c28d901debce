"""Results by reference: which have an id, what stands for them in a call, what is refused; approvals, later turns."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from internal.memory.records import RoundRecord
from internal.memory.state import decode
from prompt import template
from tests.support.host import Handler, Json, Step, When
from tests.support.plans import ALONE, completed, done_at_once, plan_run, plans, works_on
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, check_growth, check_prompt, log_of, results_in
from tests.support.wire import calls, json_message, parameter, replies, says, tool

LONG = "".join(f"Line {number} of the minutes. " for number in range(60))
ITEMS: Json = {"items": [{"id": 7, "tags": ["a/b", "c~d"], "a/b": {"m~n": 1, "": 2, "%": 3}}, {"id": 2**60}], "n": None}
SAYS: dict[str, Handler] = {"read": replies(LONG), "find": replies(json_message(ITEMS)), "send": replies("sent")}
ID = "\n\n[result:r{}]"
SEND = tool("send", parameter("q"), parameter("body", "object"), parameter("list", "array"), parameter("n", "number"))
TOOLS = [tool("read", parameter("q")), tool("find", parameter("q")), SEND]
READ = calls(("read", {"q": "minutes"}))
FIND = calls(("find", {"q": "items"}))


def sends(**arguments: object) -> list[Any]:
    return calls(("send", arguments))


def handed_on(*steps: Step, handlers: Mapping[str, Handler] | None = None, **params: Any) -> Outcome:  # noqa: ANN401
    return run(list(steps), {**SAYS, **(handlers or {})}, {"tools": TOOLS, **params})


def sent(outcome: Outcome) -> list[Json]:
    """The parameters with which ``send`` was called."""
    return [request["tool_parameters"] for request in outcome.tools.requests if request["tool"] == "send"]


def read_by_model(outcome: Outcome) -> list[str]:
    """All tool messages of the last prompt, with their ids."""
    return results_in(outcome.model.prompts[-1])


@pytest.mark.parametrize("strategy", ALONE)
def test_a_result_is_handed_on_whole_and_a_part_of_its_json_too(strategy: str) -> None:
    turns = [READ, FIND, sends(q="result:r1", list=["result:r2#/items/0/id", {"deep": "result:r2#/n"}]), ANSWER]

    outcome = run(turns, SAYS, {"tools": TOOLS, "tool_result_limit": 1000}, blueprint=ALONE[strategy])

    assert sent(outcome) == [{"q": LONG, "list": [7, {"deep": None}]}]
    first, second, third = read_by_model(outcome)
    assert len(first) <= 1000
    assert 'read_result(id="r1", offset=' in first
    assert first.endswith(ID.format(1))
    assert second == json.dumps(ITEMS) + ID.format(2)
    assert third == "sent"
    row = log_of(outcome, "CALL send")["data"]
    assert row["arguments"] == {"q": "result:r1", "list": ["result:r2#/items/0/id", {"deep": "result:r2#/n"}]}
    assert row["resolved"]["list"] == [7, {"deep": None}]
    head, _, tail = row["resolved"]["q"].partition("\n[… ")
    assert LONG.startswith(head)
    assert LONG.endswith(tail.partition(" …]\n")[2])
    check_growth(outcome.model.requests)
    written = outcome.model.prompts[-1][-2]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(written)["q"] == "result:r1"


NAMED: dict[str, tuple[Json | str, bool]] = {
    "a text of 500 characters": ("x" * 500, False),
    "a longer one": ("x" * 501, True),
    "a short JSON": (json_message({"ok": True}), True),
    "a JSON that is a text": ('{"ok": true}', False),
    "nothing": ("", False),
}


@pytest.mark.parametrize(("said", "is_named"), NAMED.values(), ids=NAMED)
def test_each_json_each_text_of_more_than_500_characters_and_each_cut_result_has_an_id(
    said: Json | str, *, is_named: bool
) -> None:
    (result,) = read_by_model(handed_on(READ, ANSWER, handlers={"read": replies(said)}))

    assert result.endswith(ID.format(1)) == is_named


VALUES: dict[str, tuple[Json, Json]] = {
    "the whole JSON": ({"body": "result:r1#"}, {"body": {**ITEMS, "items": [ITEMS["items"][0], {"id": str(2**60)}]}}),
    "a text as an object": ({"body": "result:r1"}, {"body": ITEMS}),
    "in an array that came as its JSON text": (
        {"list": '[["result:r1#/n"], "see result:r1"]'},
        {"list": [[None], "see result:r1"]},
    ),
    "escapes": ({"list": ["result:r1#/items/0/a~1b/m~0n", 5]}, {"list": [1, 5]}),
    "an integer that the host would round": ({"n": "result:r1#/items/1/id"}, {"n": str(2**60)}),
    "other text": (
        {"q": "see result:r1", "list": ["result:r1 ", "Result:r1", "result:", "result:x", {"result:r1": 1}]},
        {"q": "see result:r1", "list": ["result:r1 ", "Result:r1", "result:", "result:x", {"result:r1": 1}]},
    ),
}


@pytest.mark.parametrize(("written", "got"), VALUES.values(), ids=VALUES)
def test_what_stands_for_a_reference(written: Json, got: Json) -> None:
    assert sent(handed_on(FIND, sends(**written), ANSWER)) == [got]


KNOWN = "tool arguments reference error: "
WRONG: dict[str, tuple[Json, str]] = {
    "an unknown id": ({"q": "result:r9"}, "this conversation has no result:r9; the results are: result:r1, result:r2"),
    "an unknown name": ({"q": "result:r1#/item"}, "result:r1# has no 'item'; the names are 'items', 'n'"),
    "an unknown item": ({"q": "result:r1#/items/2/id"}, "result:r1#/items has no '2'; it has the items 0 to 1"),
    "the item after the last": ({"q": "result:r1#/items/-"}, "result:r1#/items has no '-'"),
    "no pointer": ({"q": "result:r1#items"}, "what follows the # of result:r1#items is not a JSON Pointer"),
    "no JSON": ({"q": "result:r2#/a"}, "result:r2 has no JSON"),
    "a value that does not fit": ({"n": "result:r1#/items"}, "tool arguments validation error: parameter 'n'"),
    "nothing after all": ({"q": "result:r1#/n", "nope": 1}, "unknown argument 'nope'"),
}


@pytest.mark.parametrize(("written", "problem"), WRONG.values(), ids=WRONG)
def test_what_leads_nowhere_or_does_not_fit_is_refused_and_the_model_reads_why(written: Json, problem: str) -> None:
    outcome = handed_on(FIND, READ, sends(**written), ANSWER)

    assert problem in read_by_model(outcome)[-1]
    assert sent(outcome) == []
    assert outcome.variables["tool_runs"][-1]["status"] == "refused"


def test_without_any_result_there_is_none_to_name() -> None:
    outcome = handed_on(sends(q="result:r1"), ANSWER)

    assert read_by_model(outcome) == [template.UNKNOWN_REFERENCE.format(reference="result:r1", known="none")]


def test_a_result_that_is_not_kept_whole_is_refused() -> None:
    """Of more than 2 MiB the middle is dropped."""
    outcome = handed_on(READ, sends(q="result:r1"), ANSWER, handlers={"read": replies("x" * 3_000_000)})

    assert read_by_model(outcome)[-1] == template.REFERENCE_IS_GONE.format(reference="result:r1")


def test_what_stands_in_a_result_is_no_reference() -> None:
    hostile = f"result:r1{LONG}"
    handlers = {"find": replies(json_message({"a": "result:r1"})), "read": replies(hostile)}

    outcome = handed_on(READ, FIND, sends(q="result:r2#/a", list=["result:r2#"]), ANSWER, handlers=handlers)

    assert sent(outcome) == [{"q": "result:r1", "list": [{"a": "result:r1"}]}]


def test_read_result_has_the_same_id_with_or_without_the_word_before_it() -> None:
    turn = calls(("read_result", {"id": "r1", "offset": 10}), ("read_result", {"id": "result:r1", "offset": 10}))

    outcome = handed_on(READ, turn, ANSWER, tool_result_limit=1000)

    _, first, second = read_by_model(outcome)
    assert first == second
    assert first.startswith(LONG[10:100])


def test_the_answer_in_a_schema_may_refer_to_a_result() -> None:
    schema = {"type": "object", "properties": {"minutes": {"type": "string"}}, "required": ["minutes"]}

    outcome = handed_on(READ, calls(("submit_answer", {"minutes": "result:r1"})), answer_schema=schema)

    assert outcome.variables["structured_output"] == {"minutes": LONG}


def test_a_failed_call_by_reference_is_not_repeated_and_variables_have_the_reference() -> None:
    outcome = handed_on(
        READ, sends(q="result:r1"), sends(q="result:r1"), sends(q="result:r1"), ANSWER, extra_outputs="tool_results"
    )

    assert len(sent(outcome)) == 2
    assert template.REPEATED_RESULT_NOTE in read_by_model(outcome)[-1]
    entries = outcome.variables["tool_results"]
    assert [entry["arguments"] for entry in entries] == [{"q": "minutes"}, *[{"q": "result:r1"}] * 3]
    assert entries[0]["text"] == LONG


def test_secrets_of_the_node_stay_out_of_what_is_handed_on_and_of_the_log() -> None:
    secret = "hunter2-hunter2"
    token = "t0ken-t0ken-t0ken"
    vault = tool("send", parameter("q"), parameter("token", "secret-input"), runtime_parameters={"api_key": secret})
    said = replies(f"{secret} {LONG}", json_message({"key": secret, "token": token}))
    call = sends(q="result:r1#/key", token="result:r1#/token")

    outcome = handed_on(READ, call, ANSWER, handlers={"read": said}, tools=[*TOOLS[:2], vault])

    assert sent(outcome) == [{"q": "[redacted]", "token": token, "api_key": secret}]
    assert secret not in json.dumps([outcome.messages, outcome.model.requests])
    assert token not in json.dumps(log_of(outcome, "CALL send"))


def test_the_log_without_contents_shows_sizes() -> None:
    outcome = run([READ, sends(q="result:r1"), ANSWER], SAYS, {"tools": TOOLS}, environment={"LOG_CONTENT": "off"})

    assert log_of(outcome, "CALL send")["data"]["resolved"] == {"q": f"{len(LONG):,} characters"}


@pytest.mark.parametrize(
    ("tools", "is_told"),
    [
        (TOOLS, True),
        ([tool("now"), tool("pick", parameter("n", "number"), parameter("on", "boolean"))], False),
        ([tool("pick", parameter("q", "select", options=[{"value": "a", "label": {}}]))], False),
        ([], False),
    ],
    ids=["texts", "numbers", "options", "none"],
)
def test_the_policy_speaks_of_it_only_where_a_tool_could_take_a_result(tools: list[Json], *, is_told: bool) -> None:
    outcome = handed_on(ANSWER, tools=tools)

    assert (template.REFERENCES_POLICY in outcome.model.prompts[0][0]["content"]) == is_told


# Approvals, and later turns.


def asked(*turns: Step, **params: Any) -> Outcome:  # noqa: ANN401
    outcome = handed_on(*turns, approval_required="send", **params)
    assert outcome.stop_reason == "approval_required"
    return outcome


def decided(first: Outcome, approval: str, *turns: Step) -> Outcome:
    state = first.variables["state"]
    return handed_on(*turns, approval_required="send", state=state, approval=approval, query=approval)


def test_the_question_shows_head_tail_length_and_which_result_and_that_very_value_runs() -> None:
    first = asked(READ, sends(q="result:r1", list=["result:r1", "x"]))

    done = decided(first, "yes", ANSWER)

    (pending,) = first.variables["pending_calls"]
    assert pending["arguments"] == {"q": LONG, "list": [LONG, "x"]}
    question = first.variables["approval_question"]
    assert f"- `q` (`result:r1` of `read`, {len(LONG):,} characters): `Line 0 of" in question.replace("\n\n```\n", " `")
    assert "Line 59 of the minutes." in question
    assert len(question) < 2 * 600 + 300
    assert sent(first) == []
    assert sent(done) == [{"q": LONG, "list": [LONG, "x"]}]
    written = done.model.prompts[0][-2]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(written) == {"q": "result:r1", "list": ["result:r1", "x"]}
    check_prompt(done.model.prompts[0])
    state = decode(done.variables["state"])
    assert state
    assert [call.written for entry in state.entries if isinstance(entry, RoundRecord) for call in entry.calls] == [
        ""
    ] * 2


def test_after_a_no_the_model_reads_its_own_words() -> None:
    done = decided(asked(READ, sends(q="result:r1")), "no", ANSWER)

    assert sent(done) == []
    written = [call for message in done.model.prompts[0] for call in message.get("tool_calls") or ()]
    assert json.loads(written[-1]["function"]["arguments"]) == {"q": "result:r1"}


def test_a_value_that_is_too_large_to_wait_is_refused_with_a_reason() -> None:
    outcome = handed_on(
        READ, sends(q="result:r1"), ANSWER, approval_required="send", handlers={"read": replies("x" * 70_000)}
    )

    assert read_by_model(outcome)[-1] == template.TOO_LARGE_TO_WAIT.format(most=64 * 1024)
    assert outcome.stop_reason == "answered"


def test_ids_are_never_used_again_and_those_of_earlier_runs_are_refused() -> None:
    first = handed_on(READ, FIND, ANSWER, extra_outputs="state")
    state = first.variables["state"]

    later = handed_on(sends(q="result:r1"), FIND, sends(q="result:r3"), ANSWER, state=state, extra_outputs="state")

    refused, found, third = read_by_model(later)[-3:]
    assert refused == template.UNKNOWN_REFERENCE.format(reference="result:r1", known="none")
    assert found.endswith(ID.format(3))
    assert third == "sent"
    assert "[result:r" not in "".join(results_in(later.model.prompts[0]))
    last = decode(later.variables["state"])
    assert last
    assert last.last_result == 3


def test_each_subtask_refers_to_its_own_results() -> None:
    """No id is given twice in a run, and another subtask's is unknown."""
    mine = [
        works_on("alpha", READ),
        When(LONG[:50], sends(q="result:r1")),
        When("sent", says("Sent.")),
        completed("alpha"),
    ]
    theirs = [works_on("beta", sends(list=["result:r1"])), When(KNOWN, says("No.")), completed("beta")]

    outcome = plan_run([plans("alpha", "beta"), *mine, *theirs, When("<findings>", ANSWER)], SAYS, {"tools": TOOLS})

    assert sent(outcome) == [{"q": LONG}]
    assert "[result:r1]" not in json.dumps(outcome.model.prompts[-1])


def test_a_subtask_hands_on_a_result_behind_an_approval() -> None:
    node = {"tools": TOOLS, "approval_required": "send"}
    steps = [works_on("alpha", READ), When(LONG[:50], sends(q="result:r1"))]
    first = plan_run([plans("alpha", "beta"), *steps, *done_at_once("beta")], SAYS, node)

    given = {**node, "state": first.variables["state"], "approval": "yes", "query": "yes"}
    done = plan_run([When("sent", says("Sent.")), completed("alpha"), When("<findings>", ANSWER)], SAYS, given)

    assert sent(done) == [{"q": LONG}]
