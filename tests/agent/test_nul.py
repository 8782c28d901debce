"""NUL, which PostgreSQL does not store, reaches no text, variable, log, model or tool."""

import json
from typing import Any

import pytest

from internal.plan_and_reflect import PLAN_AND_REFLECT
from tests.agent.plans import completed, plans, works_on
from tests.agent.scenes import ANSWER, part, text
from tests.support.host import Json
from tests.support.run import Outcome, run
from tests.support.wire import USAGE, breaks, calls, fails, json_message, model, parameter, replies, says, tool


def free_of_nul(outcome: Outcome) -> bool:
    """Nothing that was written holds NUL; nor do the arguments of calls, which a provider may take apart."""
    sent = texts([outcome.messages, outcome.model.requests, outcome.tools.requests, str(outcome.error)])
    called = [call for prompt in outcome.model.prompts for said in prompt for call in said.get("tool_calls") or ()]
    return "\0" not in "".join([*sent, *texts([json.loads(call["function"]["arguments"]) for call in called])])


def texts(value: object) -> list[str]:
    """Every text in a value, names among it."""
    if isinstance(value, str):
        return [value]
    items = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for item in items for text in texts(item)]


def message(kind: str, meta: Json | None = None, **body: Any) -> Json:  # noqa: ANN401 - the message's fields
    return {"type": kind, "message": body, "meta": meta}


GIVEN: dict[str, Json] = {
    "instruction": {"instruction": "a\0b"},
    "query": {"query": "a\0b"},
    "context": {"context": [{"title": "a\0b", "content": "a\0b", "metadata": {"a\0b": "a\0b"}}]},
    "context as text": {"context": "a\0b"},
    "policy": {"prompt_policy_overrides": json.dumps({"extra_policy": "a\0b", "od\0d": 1})},
    "answer schema": {
        "answer_schema": json.dumps({"type": "object", "description": "a\0b", "properties": {"a\0b": {}}})
    },
    "model": {
        "model": model(
            model="gpt\0",
            provider="p\0/p/p",
            history_prompt_messages=[{"role": "user", "content": "a\0b"}],
            completion_params={"user": "a\0b"},
        )
    },
    "file name": {"files": [{"url": "http://host.test/a", "filename": "a\0b.zip", "type": "custom"}]},
    "tool": {
        "tools": [
            tool(
                "sea\0rch",
                parameter("q\0", "select", llm_description="a\0b", options=[{"value": "a\0b"}]),
                description={"llm": "a\0b"},
                runtime_parameters={"key": "a\0b"},
            )
        ]
    },
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_nul_in_the_parameters_of_the_node(given: Json) -> None:
    steps = [calls(("submit_answer", {}))] if "answer_schema" in given else [calls(("search", {})), ANSWER]

    outcome = run(steps, {"search": replies("found")}, given, expect_all_steps=False)

    assert outcome.error is None
    assert free_of_nul(outcome)


SAID: dict[str, Json | str] = {
    "text": "a\0b",
    "json": json_message({"a\0b": ["a\0b"]}),
    "link": message("link", text="http://a.test/\0"),
    "image": message("image_link", {"tool_file_id": "a\0", "filename": "a\0"}, text="/files/tools/abc.png\0"),
    "file": message("file", {"file": {"filename": "a\0b"}}),
    "blob": message("blob", {"filename": "a\0b", "mime_type": "text/\0plain"}, blob="eA=="),
    "source": message(
        "retriever_resources",
        retriever_resources=[{"document_name": "a\0", "content": "a\0", "doc_metadata": {"\0": "\0"}}],
    ),
    "variable": message("variable", variable_name="a\0", variable_value={"a\0": "a\0"}),
}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
def test_nul_in_the_messages_of_a_tool(said: Json | str) -> None:
    outcome = run([calls(("search", {})), ANSWER], {"search": replies(said)})

    assert outcome.error is None
    assert free_of_nul(outcome)


TURNS: dict[str, list[Any]] = {
    "text": says("a", "\0", "b\0"),
    "thoughts": says("<thi\0nk>hm\0m</think\0>Yes."),
    "parts": [
        text([part("a\0b"), {"type": "image", "format": "p\0", "mime_type": "i\0", "url": "http://a.test/\0"}]),
        *says(),
    ],
    "usage": says("Yes.", usage={**USAGE, "currency": "U\0D"}, finish_reason="st\0op"),
}


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
@pytest.mark.parametrize("shown", [False, True])
def test_nul_in_the_text_of_the_model(turn: list[Any], *, shown: bool) -> None:
    outcome = run([turn], params={"emit_intermediate_thoughts": shown})

    assert outcome.error is None
    assert free_of_nul(outcome)


def test_nul_in_the_arguments_of_a_call_is_said_in_the_log() -> None:
    outcome = run([calls(("search", {"q": "a\0b"})), ANSWER], {"search": replies("found")})

    assert outcome.tools.requests[0]["tool_parameters"]["q"] == "ab"
    assert outcome.notes == ["NUL characters were taken out of the arguments of a call"]
    assert free_of_nul(outcome)


def test_a_thinking_tag_with_nul_in_it_is_one() -> None:
    assert run([says("<thi\0nk>hm</think>Yes.")]).text == "Yes."


@pytest.mark.parametrize("odd", ["\0", "\ud83d"], ids=["NUL", "half a pair"])
def test_what_a_failure_says(odd: str) -> None:
    """Its text may hold JSON, in which what must not leave us is an escape."""
    failing = {"search": breaks(str(fails("ValueError", f"a{odd}b")[0]), [message("text", text=f"a{odd}b")])}

    of_tool = run([calls(("search", {})), ANSWER], failing)
    of_model = run([fails("InvokeBadRequestError", f"a{odd}b")])

    assert (of_tool.error, of_tool.text) == (None, "Done.")
    assert ("ab" in str(of_model.error)) or "a?b" in str(of_model.error)
    assert free_of_nul(of_tool)
    assert free_of_nul(of_model)


@pytest.mark.parametrize(
    "arguments", ['{"q": "a\\u0000b"}', '{"q\\u0000": "a\\u0000b"}', '{"q": "a\\u0000b', '{"q": "a\0b"}']
)
def test_nul_in_the_arguments_of_a_call(arguments: str) -> None:
    outcome = run([calls(("search", arguments)), calls(("sea\0rch", arguments)), ANSWER], {"search": replies("found")})

    assert outcome.error is None
    assert free_of_nul(outcome)
    assert all(request["tool_parameters"] == {"q": "ab"} for request in outcome.tools.requests)


def test_nul_in_an_array_that_was_written_as_its_text() -> None:
    """JSON within JSON: its escapes are read when the text becomes an array."""
    array = {"type": "array", "items": {"type": "string"}}
    wanted = tool("search", parameter("q", "array", input_schema=array))
    schema = {"type": "object", "properties": {"q": array}}
    given = {"q": '["a\\u0000b"]'}

    outcome = run(
        [calls(("search", given)), calls(("submit_answer", given))],
        {"search": replies("found")},
        {"tools": [wanted], "answer_schema": schema},
    )

    assert outcome.tools.requests[0]["tool_parameters"] == {"q": ["ab"]}
    assert outcome.variables["structured_output"] == {"q": ["ab"]}


def test_an_answer_in_a_schema_is_checked_as_it_leaves() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}}
    steps = [calls(("submit_answer", {"a": "\0"})), calls(("submit_answer", {"a": "x\0"}))]

    assert run(steps, params={"answer_schema": schema}).variables["structured_output"] == {"a": "x"}


def test_a_plan() -> None:
    steps = [works_on("alpha", says("fou\0nd")), completed("alpha"), says("Yes.")]

    outcome = run([plans("al\0pha"), *steps], blueprint=PLAN_AND_REFLECT)

    assert outcome.variables["plan"] == ["alpha"]
    assert free_of_nul(outcome)
