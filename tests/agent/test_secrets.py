"""Where secrets are replaced: in what the model reads, in what people read, and in the log."""

import json
from typing import Any

import pytest

from internal.agent import FUNCTION_CALLING, Blueprint
from internal.plan_and_reflect import PLAN_AND_REFLECT, PlanAndReflectParams
from tests.support.host import Json, text_of
from tests.support.plans import completed, plans, works_on
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, log_of, part, passes, search, text
from tests.support.wire import calls, json_message, model, parameter, replies, says, tool

SECRET = "hunter2-hunter2"
GIVEN = "letme-in-123"


def said_to_the_model(outcome: Outcome) -> str:
    return "\n".join(text_of(message) for prompt in outcome.model.prompts for message in prompt)


# The name of a value hides it in the log only.


def test_an_answers_field_may_be_called_a_token() -> None:
    schema = {"type": "object", "properties": {"max_token": {"type": "integer"}, "password": {"type": "string"}}}
    answer = {"max_token": 4096, "password": "at least 12 characters"}

    outcome = run([calls(("submit_answer", answer))], params={"answer_schema": schema})

    assert outcome.variables["structured_output"] == answer
    assert json.loads(outcome.text) == answer


@pytest.mark.parametrize("name", ["app_token", "spreadsheet_token", "folder_token", "node_token"])
def test_ids_of_feishu_and_lark_go_from_one_tool_to_the_next(name: str) -> None:
    identifier = "bascnCMII2ORej2RItqpZZUNMIe"
    made = {"data": {name: identifier}}
    offered = [tool("create"), tool("write", parameter(name, required=True))]

    outcome = run(
        [calls(("create", {})), calls(("write", made["data"])), says(f"It is {identifier}.")],
        {"create": replies(json_message(made)), "write": replies(f"{identifier} is written")},
        {"tools": offered},
    )

    assert json.loads(outcome.tool_results(1)[0]) == made
    assert outcome.tools.requests[1]["tool_parameters"] == made["data"]
    assert (outcome.tool_results(2), outcome.text) == ([f"{identifier} is written"], f"It is {identifier}.")
    assert "[redacted]" not in said_to_the_model(outcome)
    assert json.loads(log_of(outcome, "CALL create")["data"]["tool_response"]) == {"data": {name: "[redacted]"}}


@pytest.mark.parametrize("arguments", ['{"q": "x", "password": "letmein-letmein"', "{'token': 'letmein-letmein'}"])
def test_arguments_that_do_not_parse_hide_what_they_name_in_the_log(arguments: str) -> None:
    outcome = run([calls(("search", arguments)), ANSWER], {"search": replies()})

    log = log_of(outcome, "CALL search")
    assert "letmein-letmein" not in log["data"]["arguments"]
    assert "[redacted]" in log["data"]["arguments"]


# The node's secrets: replaced wherever they occur.


def test_a_tool_gets_the_default_of_a_parameter_though_it_is_a_secret_of_the_node() -> None:
    offered = tool("search", parameter("q", required=True, default=SECRET), runtime_parameters={"api_key": SECRET})

    outcome = run([calls(("search", {})), ANSWER], {"search": replies("found")}, {"tools": [offered]})

    assert outcome.tools.requests[0]["tool_parameters"] == {"q": SECRET, "api_key": SECRET}
    assert SECRET not in json.dumps(outcome.model.requests)


def with_node_secret(*steps: Any, strategy: Blueprint[Any] = FUNCTION_CALLING, **params: Any) -> Outcome:  # noqa: ANN401 - turns
    described = tool(
        "search", parameter("q"), parameter("key", "secret-input", form="form"), runtime_parameters={"key": SECRET}
    )
    return run([*steps], {"search": replies("found")}, {"tools": [described], **params}, blueprint=strategy)


PLACES: dict[str, Json] = {
    "instruction": {"instruction": f"Use {SECRET}."},
    "query": {"query": f"Is {SECRET} right?"},
    "context": {"context": [{"title": SECRET, "content": f"k {SECRET}", "metadata": {"document_name": SECRET}}]},
    "context as text": {"context": f"k {SECRET}"},
    "policy": {"prompt_policy_overrides": json.dumps({"extra_policy": f"k {SECRET}"})},
    "skills": {"skills": f"---\nname: a\ndescription: k {SECRET}\n---\nk {SECRET}"},
    "answer criteria": {"answer_criteria": f"k {SECRET}"},
    "answer schema": {"answer_schema": json.dumps({"type": "object", "description": SECRET})},
    "history": {
        "model": model(
            history_prompt_messages=[
                {"role": "user", "content": f"k {SECRET}"},
                {"role": "assistant", "content": [{"type": "text", "data": f"k {SECRET}"}]},
            ]
        )
    },
    "file name": {"files": [{"url": "http://host.test/a", "filename": f"{SECRET}.zip", "type": "custom"}]},
    "a tool's description": {
        "tools": [
            tool(
                "search",
                parameter("q", llm_description=f"k {SECRET}"),
                description={"llm": f"k {SECRET}"},
                runtime_parameters={"api_key": SECRET},
            )
        ]
    },
    "a tool that is left out": {
        "tools": [tool("search"), tool("other", runtime_parameters={"api_key": SECRET})],
        "allowed_tools": "search",
        "query": f"k {SECRET}",
    },
}


PLAIN = (str, int, bool)
"""Types that need no line of their own: `redacted` replaces secrets in each text; numbers and switches hold none."""
NOT_SHOWN = {"approval_required", "answer_tools", "allowed_tools", "extra_outputs", "tool_calls", "thought_tags"}
"""Names that are compared with those of tools and variables, and tags; the model does not read them."""


def test_every_parameter_that_is_redacted_in_its_own_way_has_a_place() -> None:
    own_way = {name for name, field in PlanAndReflectParams.model_fields.items() if field.annotation not in PLAIN}
    placed = {name for place in PLACES.values() for name in place}
    missing = sorted(own_way - NOT_SHOWN - placed)
    remedy = "redact what the model reads in StrategyParams.redacted and add it to PLACES, or else to NOT_SHOWN"
    assert missing == [], f"{missing}: {remedy}"


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_secret_of_the_node_reaches_no_prompt_from_anywhere(place: Json) -> None:
    steps = [calls(("submit_answer", {}))] if "answer_schema" in place else [ANSWER]
    if "answer_criteria" in place:
        steps += [passes()]

    outcome = with_node_secret(*steps, **place)

    assert outcome.error is None
    assert "[redacted]" in json.dumps(outcome.model.requests)
    assert SECRET not in json.dumps(outcome.model.requests)
    assert SECRET not in json.dumps(outcome.messages)


def test_a_secret_of_the_node_in_the_users_answer_to_a_call_reaches_no_prompt() -> None:
    asks_first: dict[str, Any] = {"approval_required": "search", "query": "Find it."}
    waits = with_node_secret(search(), **asks_first)

    outcome = with_node_secret(ANSWER, **asks_first, state=waits.variables["state"], approval=f"no, use {SECRET}")

    assert "no, use [redacted]" in said_to_the_model(outcome)
    assert SECRET not in json.dumps(outcome.model.requests)
    assert SECRET not in json.dumps(outcome.messages)
    assert SECRET not in json.dumps(outcome.variables)


@pytest.mark.parametrize("shown", [False, True])
def test_a_secret_of_the_node_leaves_streamed_text_and_thoughts_wherever_they_are_cut(*, shown: bool) -> None:
    whole = f"<think>It is {SECRET}.</think>The key is {SECRET}, really {SECRET}."
    for size in (1, 3, 7):
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]

        outcome = with_node_secret(says(*pieces), emit_intermediate_thoughts=shown)

        assert outcome.text.endswith("The key is [redacted], really [redacted].")
        assert outcome.text.count("[redacted]") == (3 if shown else 2)
        assert SECRET not in json.dumps(outcome.messages)


def test_a_secret_in_parts_of_a_turn_is_replaced_too() -> None:
    outcome = with_node_secret([text([part("It is hunter2-"), part("hunter2.")]), *says()])

    assert outcome.text == "It is [redacted]."


def test_the_agents_own_sentences_are_not_hidden() -> None:
    described = tool("search", runtime_parameters={"password": "answered"})

    outcome = run([says("It is answered.")], params={"tools": [described]})

    assert outcome.text == "It is [redacted]."
    assert outcome.stop_reason == "answered"
    assert outcome.last_json["decision_summary"]["stop_reason"] == "answered"


# What the model gives to a secret parameter: hidden from people, not from the model.


def with_given_secret(arguments: Json | str, *steps: Any, told: str = f"Welcome, {GIVEN}.", **params: Any) -> Outcome:  # noqa: ANN401
    offered = tool("login", parameter("pin", "secret-input"), parameter("q"))
    wants = calls(("login", arguments), text=f"I log in with {GIVEN}.")
    return run([wants, *steps], {"login": replies(told)}, {"tools": [offered], **params})


@pytest.mark.parametrize(
    "arguments",
    [
        {"pin": GIVEN},
        {"pin": GIVEN, "bad": 1},
        f'{{"pin": "{GIVEN}", "q',
        f'{{"q": "x" "pin": "{GIVEN}"',
        f"{{'q': 'x', 'pin': '{GIVEN}'}}",
        f"{{pin: {GIVEN}, q: x}}",
        f"pin={GIVEN}",
    ],
    ids=str,
)
@pytest.mark.parametrize("shown", [False, True])
def test_what_a_secret_parameter_gets_leaves_log_text_and_variables(arguments: Json | str, *, shown: bool) -> None:
    steps = says("<think>hm ", GIVEN, "</think>", "Logged in with ", GIVEN[:5], GIVEN[5:], ".")

    outcome = with_given_secret(arguments, steps, emit_intermediate_thoughts=shown)

    assert outcome.text.endswith("Logged in with [redacted].")
    assert GIVEN not in json.dumps(outcome.messages)
    assert "letme" not in json.dumps(outcome.messages)


def test_the_model_goes_on_reading_it() -> None:
    outcome = with_given_secret({"pin": GIVEN}, ANSWER)

    assert outcome.tool_results() == [f"Welcome, {GIVEN}."]
    (said,) = [message for message in outcome.model.prompts[-1] if message["role"] == "assistant"]
    assert said["content"] == f"I log in with {GIVEN}."
    assert json.loads(said["tool_calls"][0]["function"]["arguments"]) == {"pin": GIVEN}
    assert outcome.tools.requests[0]["tool_parameters"] == {"pin": GIVEN}


@pytest.mark.parametrize("arguments", ['{"q": "my pin: sesame"', '{"q": "pin sesame", pin', "pin: sesame"[5:]])
def test_words_beside_a_secret_parameters_name_in_another_argument_are_not_hidden(arguments: str) -> None:
    assert with_given_secret(arguments, says("Open sesame.")).text == "Open sesame."


def test_another_parameter_of_that_tool_hides_nothing() -> None:
    outcome = with_given_secret({"q": GIVEN}, says(f"It is {GIVEN}."))

    assert outcome.text == f"It is {GIVEN}."


def test_a_given_secret_leaves_the_variables_of_a_plan_and_its_findings_keep_it() -> None:
    offered = tool("login", parameter("pin", "secret-input"))
    logs_in = [works_on("alpha", calls(("login", {"pin": GIVEN}))), says(f"{GIVEN} it is")]

    outcome = run(
        [plans("alpha"), *logs_in, completed("alpha"), says("Done.")],
        {"login": replies("in")},
        {"tools": [offered]},
        blueprint=PLAN_AND_REFLECT,
    )

    assert outcome.variables["subtasks"][0]["answer"] == "[redacted] it is"
    assert GIVEN not in json.dumps(outcome.messages)
    assert f"{GIVEN} it is" in text_of(outcome.model.prompts[-1][-1])


@pytest.mark.parametrize("kind", ["image_link", "binary_link"])
def test_a_secret_in_the_address_of_a_tools_file_does_not_reach_the_user(kind: str) -> None:
    """Dify finds the file by its id."""
    address = f"/files/tools/7.png?key={SECRET}"
    link = {"type": kind, "message": {"text": address}, "meta": {"tool_file_id": "7", "filename": "a.png"}}
    described = tool(
        "chart", parameter("q"), parameter("key", "secret-input", form="form"), runtime_parameters={"key": SECRET}
    )

    outcome = run([calls(("chart", {"q": "x"})), ANSWER], {"chart": replies(link)}, {"tools": [described]})

    (sent,) = [message for message in outcome.messages if message["type"] == "image_link"]
    assert sent["meta"]["tool_file_id"] == "7"
    assert SECRET not in json.dumps(outcome.messages)
