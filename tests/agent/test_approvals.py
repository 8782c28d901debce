"""Calls that need an approval: they wait, the user answers, a later run goes on; what the answer is bound to."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from internal.agent import Blueprint
from internal.call import portable_id
from internal.memory.records import CallRecord, RoundRecord, State, UserRecord
from internal.memory.state import decode, encode
from prompt import template, user_texts
from strategies.gpt5_function_calling import GPT5FunctionCallingStrategy
from strategies.gpt5_react import GPT5ReActStrategy
from tests.support.host import Json, Step
from tests.support.local_http import SignedFiles, served
from tests.support.run import Outcome, run
from tests.support.scenes import (
    ANSWER,
    CITY,
    asks,
    assistant_messages,
    check_prompt,
    ends,
    entry,
    log_of,
    results_in,
    text,
)
from tests.support.wire import breaks, calls, fails, parameter, replies, says, tool

SANDBOX = {"credential_id": "cred-sandbox"}
PRODUCTION = {"credential_id": "cred-production"}


def transfer(**more: Any) -> Json:  # noqa: ANN401 - fields of Dify's tool dict
    secret = {**parameter("key", "secret-input"), "form": "form"}
    return tool("transfer", parameter("amount"), {**parameter("bank"), "form": "form"}, secret, **more)


def bank(tools: Sequence[Json], steps: Sequence[Step], before: Outcome | None = None) -> Outcome:
    """One turn of a conversation in which every transfer needs the user's yes; after the first, the user says it."""
    params: dict[str, Any] = {"tools": list(tools), "approval_required": "transfer", "query": "Pay."}
    if before:
        params |= {"state": before.variables["state"], "approval": "yes", "query": "yes"}
    return run(steps, {"transfer": replies("done")}, params)


def sent(outcome: Outcome) -> list[tuple[Any, Any]]:
    """What reached a bank: the credential and the developer's value."""
    requests = outcome.tools.requests
    return [(request.get("credential_id"), request["tool_parameters"].get("bank")) for request in requests]


PAY = {name: calls((name, {"amount": "5"})) for name in ("transfer", "tools_transfer")}
TWO_BANKS = [{"runtime_parameters": {"bank": name}} for name in ("sandbox", "production")]


def upload(address: str, number: int, sign: str = "valid", **more: Any) -> Json:  # noqa: ANN401 - fields of a file
    """A file as Dify hands it over."""
    url = f"{address}/files/{number}/file-preview?timestamp=1&nonce=2&sign={sign}"
    named = {"type": "document", "filename": "offer.pdf", "mime_type": "application/pdf", "extension": ".pdf"}
    return {"dify_model_identity": "__dify__file__", "url": url, **named, "size": 12, **more}


MAIL = calls(("mail", {"to": "a@b.example", "offer": "offer.pdf"}))


def post(
    steps: Sequence[Step], given: Sequence[Json] = (), before: Outcome | None = None, said: str = "yes"
) -> Outcome:
    mail = tool("mail", parameter("to"), parameter("offer", "file", required=True))
    params: dict[str, Any] = {"tools": [mail], "approval_required": "mail", "query": "Send it.", "files": list(given)}
    if before:
        params |= {"state": before.variables["state"], "approval": said, "query": said}
    return run(steps, {"mail": replies("sent")}, params)


def attached(outcome: Outcome) -> list[Mapping[str, Any]]:
    return [request["tool_parameters"]["offer"] for request in outcome.tools.requests]


FOUND = {"search": replies("found"), "order": replies("ordered")}
ASKING = {"approval_required": "order", "query": "Order a lamp."}
CALL = calls(("order", {"q": "lamp"}), text="I order it.")


def asked(steps: Sequence[Step] = (CALL,), params: Mapping[str, Any] | None = None, **more: Any) -> Outcome:  # noqa: ANN401
    """A run that ends with calls that wait."""
    return run(steps, FOUND, {**ASKING, **(params or {})}, **more)


def answered(first: Outcome, approval: str, steps: Sequence[Step] = (ANSWER,), **params: object) -> Outcome:
    """The next run of the same node, in a chat: what the user says is both the approval and the query."""
    state = first.variables["state"]
    given = {**ASKING, "state": state, "approval": approval, "query": approval, **params}
    return run(steps, FOUND, given)


def orders(outcome: Outcome) -> list[Json]:
    """The parameters of the calls that were sent to the tool."""
    return [request["tool_parameters"] for request in outcome.tools.requests if request["tool"] == "order"]


def test_a_call_that_needs_an_approval_waits_and_the_run_ends_without_an_error() -> None:
    outcome = asked()

    (pending,) = outcome.variables["pending_calls"]
    assert outcome.error is None
    assert (outcome.stop_reason, orders(outcome)) == ("approval_required", [])
    assert (pending["tool"], pending["arguments"]) == ("order", {"q": "lamp"})
    assert pending["id"].startswith("call_1_")
    assert "`order`" in outcome.text
    assert "lamp" in outcome.text
    question = f"{outcome.variables['approval_question']}\n\n{user_texts.HOW_TO_APPROVE['en']}"
    assert outcome.text == f"{question}\n\n> I order it."
    assert "I order it." not in outcome.variables["approval_question"]
    assert outcome.variables["tool_runs"][0]["status"] == "waiting"
    assert log_of(outcome, "CALL order, waits for approval")["status"] == "success"
    (offered,) = [each for each in outcome.model.requests[0]["tools"] if each["name"] == "order"]
    assert offered["description"] == f"What order does.\n\n{template.APPROVAL_NOTE}"


FAKE = f"{user_texts.APPROVAL_REQUEST['en']}\n\n**`search`**\n\n- `q`: `weather`"
LONG = "I looked at all the lamps that there are. " * 10


def test_a_copied_question_before_the_true_one_is_marked_and_what_was_held_back_comes_behind_it() -> None:
    hidden = "<details>\n\n" + FAKE
    outcome = asked([calls(("order", {"q": "lamp"}), text=f"{LONG}\n\n{FAKE}\n\n{hidden}")])

    shown, question, behind = outcome.text.partition(outcome.variables["approval_question"])
    remark = user_texts.NOT_THE_QUESTION["en"]
    assert question.count("`lamp`") == 1
    assert remark not in question
    assert shown.startswith(LONG.strip())
    assert [part.count(user_texts.APPROVAL_REQUEST["en"][:-1]) for part in (shown, behind)] == [1, 1]
    assert [part.count(remark) for part in (shown, behind)] == [1, 1]
    assert "<details>" not in shown
    assert "\n\n> <details>\n> \n> I need" in behind


@pytest.mark.parametrize("node", [{}, {"approval_required": ""}], ids=["with approvals", "without"])
def test_only_nodes_with_approvals_mark_what_looks_like_a_question(node: dict[str, str]) -> None:
    outcome = asked([says(FAKE)], node)

    is_marked = user_texts.NOT_THE_QUESTION["en"] in outcome.text
    assert is_marked is ("approval_required" not in node)


def test_a_remark_that_is_shown_as_a_thought_is_not_said_twice() -> None:
    outcome = asked([CALL], {"emit_intermediate_thoughts": True})

    assert outcome.text.count("I order it.") == 1
    assert outcome.text.startswith("<think>\nI order it.\n</think>\n")


def test_the_other_calls_of_the_turn_run() -> None:
    outcome = asked([calls(("search", {"q": "a"}), ("order", {"q": "lamp"}), ("order", "broken"))])
    resumed = answered(outcome, "yes")

    assert [each["status"] for each in outcome.variables["tool_runs"]] == ["ok", "waiting", "refused"]
    assert len(outcome.variables["pending_calls"]) == 1
    assert [text[:26] for text in results_in(resumed.model.prompts[0])] == [
        *("found", "ordered", "tool arguments parse error")
    ]
    check_prompt(resumed.model.prompts[0])


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ("ordre", "the node has no tool 'ordre'; its tools are: search, order; write names or provider/name"),
        (",", "the node has no tool ','; its tools are"),
        ("[]", "the node has no tool '[]'; its tools are"),
        ("order, mail", "the node has no tool 'mail'"),
        ("conversation.tools", "variable"),
    ],
)
def test_tools_are_named_as_in_allowed_tools_and_a_wrong_name_is_an_error(entries: str, reason: str) -> None:
    outcome = asked([], {"approval_required": entries})

    assert str(outcome.error).startswith("parameter 'approval_required': ")
    assert reason in str(outcome.error)
    for names in ("tools/order", "acme/tools/tools/order", "*", "search, order"):
        assert asked(params={"approval_required": names}).stop_reason == "approval_required"


def test_the_variables_come_out_of_every_run_of_a_node_that_asks_and_of_no_other() -> None:
    outcome = asked([ANSWER])

    assert outcome.variables["pending_calls"] == []
    assert outcome.variables["state"]
    assert {"pending_calls", "approval_question", "state"} & run([ANSWER]).variables.keys() == set()


def test_an_approving_word_runs_the_call_and_adds_no_message() -> None:
    outcome = answered(asked(), "Yes, please!", context=[{"title": "t", "content": "the context of this turn"}])

    (prompt,) = outcome.model.prompts
    assert orders(outcome) == [{"q": "lamp"}]
    assert [(message["role"], message["content"]) for message in prompt][-3:] == [
        *(("user", "Order a lamp."), ("assistant", "I order it."), ("tool", "ordered"))
    ]
    check_prompt(prompt)
    assert "the context of this turn" not in json.dumps(prompt)
    assert outcome.variables["sources"] == []
    assert (outcome.stop_reason, outcome.variables["pending_calls"]) == ("answered", [])
    (ran,) = outcome.variables["tool_runs"]
    assert (ran["tool"], ran["round"], ran["status"]) == ("order", 0, "ok")


NO = "No, take the cheaper one"
BECAUSE = template.NOT_APPROVED_BECAUSE.format(reason="too expensive")
NOTHING: list[Any] = ["", None, [], "null"]
NOT_GIVEN = "approval: the user gave none, so 1 waiting call counts as not approved"
NO_VARIABLE = "approval: 'sys.qery' looks like a variable that does not exist; choose the variable in the node again"


@pytest.mark.parametrize(
    ("approval", "query", "read", "notes"),
    [
        (NO, NO, [template.NOT_APPROVED_SEE_NEXT, NO], []),
        ("example.com", "example.com", [template.NOT_APPROVED_SEE_NEXT, "example.com"], []),
        *(("too expensive", query, [BECAUSE], []) for query in ("Order a lamp.", "", " ")),
        ("too expensive", "And the weather?", [BECAUSE, "And the weather?"], []),
        ("yes", "And the weather?", ["ordered", "And the weather?"], []),
        *((nothing, "Why?", [template.APPROVAL_NOT_GIVEN, "Why?"], [NOT_GIVEN]) for nothing in NOTHING),
        ("sys.qery", "yes", [template.APPROVAL_NOT_GIVEN, "yes"], [NOT_GIVEN, NO_VARIABLE]),
    ],
)
def test_what_the_user_says_is_read_once_as_a_result_or_as_a_message(
    approval: Any,  # noqa: ANN401 - as Dify sends it
    query: str,
    read: list[str],
    notes: list[str],
) -> None:
    outcome = answered(asked(), approval, query=query)

    (prompt,) = outcome.model.prompts
    *_, result = [at for at, message in enumerate(prompt) if message["role"] == "tool"]
    said = [(message["role"], message["content"]) for message in prompt[result:]]
    assert said[::2] == list(zip(("tool", "user"), read, strict=False))
    assert said[1::2] == [("assistant", template.TURN_BETWEEN)] * (len(read) - 1)
    assert len(orders(outcome)) == (approval == "yes")
    assert outcome.notes == notes
    check_prompt(prompt)


def test_a_rejection_is_not_an_error_and_comes_with_the_context_of_its_turn_but_nothing_said_is_one() -> None:
    outcome = answered(asked(), NO, context=[{"title": "t", "content": "prices"}])

    assert "prices" in outcome.model.prompts[0][-1]["content"]
    row = outcome.logs["approval.call1"]
    assert (row["label"], row["status"], row["error"]) == ("CALL order, not approved", "success", None)
    assert "parameter 'query'" in str(answered(asked(), "", [], query="").error)


def test_calls_are_answered_one_by_one() -> None:
    first = asked([calls(("order", {"q": "a"}), ("order", {"q": "b"}), ("order", {"q": "c"}))])
    one, two, _three = (call["id"] for call in first.variables["pending_calls"])
    answer = json.dumps({one: True, two: {"approved": False, "reason": "too expensive"}, "call_9_00000000": True})

    outcome = answered(first, answer)

    assert orders(outcome) == [{"q": "a"}]
    assert results_in(outcome.model.prompts[0]) == [
        "ordered",
        template.NOT_APPROVED_BECAUSE.format(reason="too expensive"),
        template.NOT_APPROVED,
    ]
    assert any("call_9_00000000" in note for note in outcome.notes)
    assert outcome.model.prompts[0][-1]["role"] == "tool"  # the JSON does not become a message


def test_no_call_runs_twice_and_a_second_one_may_wait_in_the_run_that_made_the_first() -> None:
    """The state of the run that made the call no longer holds it; the old one is what the chatflow overwrote."""
    second = answered(asked(), "yes", [calls(("order", {"q": "desk"}))])
    third = answered(second, "yes")
    fourth = answered(third, "yes")

    assert second.variables["pending_calls"][0]["id"].startswith("call_2_")
    assert [orders(outcome) for outcome in (second, third, fourth)] == [[{"q": "lamp"}], [{"q": "desk"}], []]
    check_prompt(third.model.prompts[0])
    assert fourth.model.prompts[0][-1]["content"] == "yes"  # nothing waits, so that it is a message like any other


@pytest.mark.parametrize("failing", ["InvokeBadRequestError", "InvokeAuthorizationError"])
def test_after_an_approved_call_no_failure_of_the_model_ends_the_run_in_an_error(failing: str) -> None:
    outcome = answered(asked(), "yes", [fails(failing, "the provider's words")])

    assert outcome.error is None
    assert outcome.stop_reason == "model_failed"
    assert "gpt-5-scripted (openai) refused" in outcome.text
    assert "(order: done)" in outcome.text
    assert "the provider's words" in outcome.logs["round1"]["error"]
    again = answered(outcome, "yes")
    assert orders(again) == []
    assert "ordered" in results_in(again.model.prompts[0])
    assert answered(asked(), "no", [fails(failing)]).error is not None


@pytest.mark.parametrize("now", [tool("search", parameter("q")), tool("order", parameter("q", "number"))])
def test_a_state_cannot_make_a_tool_run_that_the_node_does_not_offer(now: Json) -> None:
    outcome = answered(asked(), "yes", tools=[now], approval_required="*")

    assert orders(outcome) == []
    assert results_in(outcome.model.prompts[0]) == [template.APPROVED_CALL_CHANGED]


SECRET = tool("order", parameter("q"), parameter("key", "secret-input"))


@pytest.mark.parametrize(
    ("offered", "arguments", "why"),
    [
        (SECRET, {"q": "lamp", "key": "sk-123456"}, template.CONFIDENTIAL_CANNOT_WAIT),
        (tool("order", parameter("item", "object")), {"item": {"id": 2**60 + 1}}, template.ROUNDED_CANNOT_WAIT),
        (tool("order", parameter("q")), {"q": "x" * 70_000}, template.TOO_LARGE_TO_WAIT.format(most=65_536)),
    ],
    ids=["a secret", "a value that the host would round", "too large"],
)
def test_what_a_state_cannot_hold_unchanged_does_not_wait(offered: Json, arguments: Json, why: str) -> None:
    outcome = asked([calls(("order", arguments)), ANSWER], {"tools": [offered]})

    assert outcome.stop_reason == "answered"
    assert outcome.tool_results() == [why]
    assert "sk-123456" not in json.dumps(outcome.messages)


def test_a_large_number_is_shown_and_sent_with_all_its_digits() -> None:
    tools = [tool("order", parameter("q", "number"))]
    first = asked([calls(("order", {"q": 2**60 + 1}))], {"tools": tools})

    outcome = answered(first, "yes", tools=tools)

    assert str(2**60 + 1) in first.text
    assert first.variables["pending_calls"][0]["arguments"] == {"q": str(2**60 + 1)}
    assert orders(outcome) == [{"q": str(2**60 + 1)}]


def test_the_sentence_about_a_failure_says_what_became_of_each_call() -> None:
    first = asked([calls(("order", {"q": "a"}), ("order", {"q": "b"}))])
    given = {**ASKING, "state": first.variables["state"], "approval": "yes", "query": "yes", "maximum_tool_calls": 1}

    outcome = run([fails("InvokeBadRequestError")], {"order": breaks("sold out"), "search": replies("")}, given)

    assert "(order: failed, order: not run)" in outcome.text


def test_a_hand_over_of_the_answer_in_the_same_turn_is_not_taken() -> None:
    outcome = asked([calls(("submit_answer", {"city": "Rome"}), ("order", {"q": "lamp"}))], {"answer_schema": CITY})

    assert outcome.stop_reason == "approval_required"
    assert outcome.variables["structured_output"] is None
    resumed = answered(outcome, "yes", [calls(("submit_answer", {"city": "Rome"}))], answer_schema=CITY)
    assert resumed.variables["structured_output"] == {"city": "Rome"}
    assert results_in(resumed.model.prompts[0]) == [template.ANSWER_NOT_TAKEN, "ordered"]
    check_prompt(resumed.model.prompts[0])


def test_the_user_is_asked_in_the_language_of_the_conversation_which_a_short_answer_does_not_change() -> None:
    outcome = asked(params={"query": "ランプを注文して"})
    texts = [outcome.text]
    in_english = {"approved": False, "reason": "This one is too expensive, please look for another one"}
    by_call = json.dumps({outcome.variables["pending_calls"][0]["id"]: in_english})
    for said in (by_call, "ok", "了解", "No, please order the cheaper desk"):
        outcome = answered(outcome, said, [calls(("order", {"q": "desk"}))])
        texts.append(outcome.text)

    asks = [[language for language, words in user_texts.HOW_TO_APPROVE.items() if words in text] for text in texts]
    assert asks == [["ja"], ["ja"], ["ja"], ["ja"], ["en"]]


BLUEPRINTS: dict[str, Blueprint[Any]] = {
    "gpt5_function_calling": GPT5FunctionCallingStrategy.blueprint,
    "gpt5_react": GPT5ReActStrategy.blueprint,
}


@pytest.mark.parametrize("first", BLUEPRINTS)
@pytest.mark.parametrize("second", BLUEPRINTS)
def test_only_the_same_strategy_goes_on_with_calls_that_wait(first: str, second: str) -> None:
    state = asked(blueprint=BLUEPRINTS[first]).variables["state"]

    outcome = run(
        [ANSWER], FOUND, {**ASKING, "state": state, "approval": "yes", "query": "yes"}, blueprint=BLUEPRINTS[second]
    )

    assert len(orders(outcome)) == (first == second)
    assert outcome.error is None


HIDING = ["<!--", '<div style="display:none">', "<details>", "```", "~~~", "$$", "\\["]
PLAIN = "This is plainly the answer. " * 20


@pytest.mark.parametrize("hiding", HIDING)
@pytest.mark.parametrize("thoughts", [False, True], ids=["hidden", "shown"])
@pytest.mark.parametrize("strategy", BLUEPRINTS)
def test_no_text_of_the_model_hides_the_question(hiding: str, thoughts: bool, strategy: str) -> None:  # noqa: FBT001
    remark = f"{PLAIN}\n\n{hiding}\nhm"
    outcome = asked(
        [
            calls(("search", {"q": "a"}), text=f"<think>{hiding}</think>{remark}"),
            calls(("order", {"q": "lamp"}), text=remark),
        ],
        {"emit_intermediate_thoughts": thoughts},
        blueprint=BLUEPRINTS[strategy],
    )
    request = user_texts.APPROVAL_REQUEST["en"]
    before, _, question = outcome.text.partition(request)

    assert outcome.stop_reason == "approval_required"
    assert before.count(PLAIN.strip()) == 2
    assert hiding not in before.replace("<think>", "").replace("</think>", "")
    assert before.endswith("</think>\n\n" if thoughts else f"{PLAIN.strip()}\n\n")
    assert ("hm" in before) == thoughts
    assert "lamp" in question
    assert hiding in json.dumps(outcome.logs, ensure_ascii=False).replace("\\\\", "\\").replace('\\"', '"')


def test_a_closing_answer_puts_nothing_on_hold() -> None:
    outcome = asked([calls(("search", {"q": "x"})), calls(("order", {"q": "lamp"}))], {"maximum_iterations": 1})

    assert (outcome.stop_reason, outcome.variables["pending_calls"]) == ("iteration_limit", [])


@pytest.mark.parametrize("differ", [[SANDBOX, PRODUCTION], TWO_BANKS], ids=["credential", "fixed value"])
@pytest.mark.parametrize(("name", "position"), [("transfer", 0), ("tools_transfer", 1)])
@pytest.mark.parametrize("is_turned", [False, True], ids=["same order", "turned order"])
def test_of_a_tool_that_a_node_has_twice_the_approved_one_runs(
    differ: list[Json], name: str, position: int, *, is_turned: bool
) -> None:
    tools = [transfer(**each) for each in differ]
    asked = bank(tools, [PAY[name]])

    done = bank(tools[::-1] if is_turned else tools, [ANSWER], asked)

    wanted = differ[position]
    values = wanted.get("runtime_parameters") or {}
    assert sent(asked) == []
    assert sent(done) == [(wanted.get("credential_id"), values.get("bank"))]
    (written,) = [call for message in done.model.prompts[0] for call in message.get("tool_calls") or ()]
    assert is_turned or written["function"]["name"] == name


@pytest.mark.parametrize(
    "differ", [[{}, {}], [{"runtime_parameters": {"key": each}} for each in ("s3cret-1", "s3cret-2")]],
    ids=["nothing", "a secret alone"],
)  # fmt: skip
def test_of_two_tools_that_cannot_be_told_apart_none_runs(differ: list[Json]) -> None:
    outcome = bank([transfer(**each) for each in differ], [PAY["transfer"], ANSWER])

    assert outcome.tool_results() == [template.DOUBLE_CANNOT_WAIT]
    assert (sent(outcome), outcome.stop_reason) == ([], "answered")


@pytest.mark.parametrize(
    "now", [[SANDBOX], [{"runtime_parameters": {"bank": "b"}}], [PRODUCTION, PRODUCTION], []],
    ids=["another credential", "another value", "a second one", "gone"],
)  # fmt: skip
def test_after_a_change_of_the_node_the_approved_call_is_not_run_and_can_be_asked_again(now: list[Json]) -> None:
    asked = bank([transfer(**PRODUCTION)], [PAY["transfer"]])
    tools = [transfer(**each) for each in now] or [tool("transfer", provider="acme/other/other")]

    again = bank(tools, [ANSWER], asked)

    assert sent(again) == []
    assert results_in(again.model.prompts[0]) == [template.APPROVED_CALL_CHANGED]


def test_a_secret_changes_nothing_that_can_be_seen() -> None:
    def asked(key: str) -> Outcome:
        return bank([transfer(runtime_parameters={"key": key})], [PAY["transfer"]])

    assert asked("1234").variables["pending_calls"] == asked("4321").variables["pending_calls"]


PROVIDERS_ID = "functions.order:0"
WRITTEN = '{"q" : "lamp"}'
BY_PROVIDER = [text("I order it."), asks(entry(PROVIDERS_ID, "order", WRITTEN)), ends("tool_calls")]


def written_back(outcome: Outcome) -> list[tuple[str, str, str]]:
    """Of each call in the first prompt: its id, the id of its result, and its arguments."""
    prompt = outcome.model.prompts[0]
    made = [call for message in assistant_messages(prompt) for call in message.get("tool_calls") or ()]
    results = [message["tool_call_id"] for message in prompt if message["role"] == "tool"]
    return [(call["id"], of, call["function"]["arguments"]) for call, of in zip(made, results, strict=True)]


@pytest.mark.parametrize("approval", ["yes", "no, it is too dear"])
def test_after_the_answer_the_call_goes_back_under_the_providers_id_and_as_the_model_wrote_it(approval: str) -> None:
    first = asked([BY_PROVIDER])
    second = answered(first, approval)
    third = run([ANSWER], FOUND, {"state": second.variables["state"], "query": "Thanks."})

    assert first.variables["pending_calls"][0]["id"].startswith("call_1_")
    for outcome in (second, third):
        assert written_back(outcome) == [(PROVIDERS_ID, PROVIDERS_ID, WRITTEN)]


def test_a_waiting_call_without_the_providers_id_goes_back_under_an_id_that_all_take() -> None:
    """States of 0.1.0 and of 2026-11 do not have it."""
    before = decode(asked([BY_PROVIDER]).variables["state"])
    assert before
    (waiting,) = before.waiting
    older = waiting.model_copy(update={"call_id": "", "arguments": '{"q":"lamp"}'})
    ended = RoundRecord(said="I order it.", calls=(older,))
    state = encode(before.model_copy(update={"entries": (*before.entries[:-1], ended)}))

    outcome = run([ANSWER], FOUND, {**ASKING, "state": state, "approval": "yes", "query": "yes"})

    assert orders(outcome) == [{"q": "lamp"}]
    given = portable_id(waiting.id)
    assert written_back(outcome) == [(given, given, '{"q":"lamp"}')]


def test_a_waiting_call_of_an_older_state_is_not_run_and_can_be_asked_again() -> None:
    """Its id says nothing of the tool's settings and of files."""
    digest = hashlib.sha256(b'["acme/tools/tools","order",{"q":"tea"}]').hexdigest()[:8]
    waiting = CallRecord(id=f"call_1_{digest}", provider="acme/tools/tools", tool="order", arguments='{"q": "tea"}')
    before = State(
        strategy="gpt5_function_calling", entries=(UserRecord(text="Buy."), RoundRecord(calls=(waiting,))), last_call=1
    )
    params = {"approval_required": "*", "state": encode(before), "approval": "yes", "query": "yes"}

    outcome = run([calls(("order", {"q": "tea"}))], {"order": replies("x")}, params)

    assert outcome.tools.requests == []
    assert results_in(outcome.model.prompts[0])[-1] == template.APPROVED_CALL_CHANGED
    assert [call["id"] != waiting.id for call in outcome.variables["pending_calls"]] == [True]


@pytest.fixture(scope="module")
def files() -> Iterator[str]:
    with served(SignedFiles) as address:
        yield address


def test_a_plain_yes_sends_the_file_that_was_shown(files: str) -> None:
    asked = post([MAIL], [upload(files, 1)])

    done = post([ANSWER], before=asked)

    assert attached(asked) == []
    assert attached(done) == [upload(files, 1)]
    assert not post([ANSWER], before=done, said="And now?").model.requests[0]["tools"]  # the file is forgotten


@pytest.mark.parametrize("change", [{"number": 2}, {"size": 13}], ids=["another upload", "another size"])
def test_a_file_that_is_attached_again_is_another_file_and_is_asked_again(files: str, change: Json) -> None:
    asked = post([MAIL], [upload(files, 1)])
    other = upload(files, **{"number": 1, **change})

    again = post([MAIL], [other], asked)
    done = post([ANSWER], before=again)

    assert attached(again) == []
    assert results_in(again.model.prompts[0])[-1] == template.APPROVED_CALL_CHANGED
    assert again.stop_reason == "approval_required"
    assert attached(done) == [other]


def test_a_file_whose_address_answers_no_more_has_to_be_attached_again(files: str) -> None:
    outcome = post([says("Attach it again.")], before=post([MAIL], [upload(files, 1, sign="expired")]))

    assert attached(outcome) == []
    assert results_in(outcome.model.prompts[0])[-1] == template.ATTACH_AGAIN.format(name="offer.pdf")


def test_after_a_rejection_the_call_can_be_made_again_with_the_same_file(files: str) -> None:
    elsewhere = calls(("mail", {"to": "c@d.example", "offer": "offer.pdf"}))
    again = post([elsewhere], before=post([MAIL], [upload(files, 1)]), said="no, to c@d.example")
    done = post([ANSWER], before=again)

    assert attached(again) == []
    assert attached(done) == [upload(files, 1)]
