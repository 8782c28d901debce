"""NUL, which PostgreSQL does not store, reaches no text, variable, log, model or tool."""

import json
from typing import Any

import pytest

from internal.plan_and_reflect import PLAN_AND_REFLECT
from tests.support.host import Json
from tests.support.plans import completed, plans, works_on
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, FOUND, part, text
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


SCHEMA = json.dumps({"type": "object", "description": "a\0b", "properties": {"a\0b": {}}})
HISTORY = [{"role": "user", "content": "a\0b"}]
GIVEN: dict[str, Json] = {
    "texts": {"instruction": "a\0b", "query": "a\0b", "context": "a\0b"},
    "json": {
        "context": [{"title": "a\0b", "content": "a\0b", "metadata": {"a\0b": "a\0b"}}],
        "prompt_policy_overrides": json.dumps({"extra_policy": "a\0b", "od\0d": 1}),
        "files": [{"url": "http://host.test/a", "filename": "a\0b.zip", "type": "custom"}],
    },
    "answer schema": {"answer_schema": SCHEMA},
    "model": {"model": model(model="gpt\0", provider="p\0/p/p", history_prompt_messages=HISTORY, mode="cha\0t")},
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

    outcome = run(steps, FOUND, given, expect_all_steps=False)

    assert outcome.error is None
    assert free_of_nul(outcome)


SOURCE = {"document_name": "a\0", "content": "a\0", "doc_metadata": {"\0": "\0"}}
SAID: list[Json | str] = [
    "a\0b",
    json_message({"a\0b": ["a\0b"]}),
    message("link", text="http://a.test/\0"),
    message("image_link", {"tool_file_id": "a\0", "filename": "a\0"}, text="/files/tools/abc.png\0"),
    message("file", {"file": {"filename": "a\0b"}}),
    message("blob", {"filename": "a\0b", "mime_type": "text/\0plain"}, blob="eA=="),
    message("retriever_resources", retriever_resources=[SOURCE]),
    message("variable", variable_name="a\0", variable_value={"a\0": "a\0"}),
]


def test_nul_in_the_messages_of_a_tool() -> None:
    handlers = {"search": replies(*SAID), "set": replies(SAID[-1])}

    outcome = run([calls(("search", {}), ("set", {})), ANSWER], handlers)

    assert outcome.error is None
    assert free_of_nul(outcome)


IMAGE = {"type": "image", "format": "p\0", "mime_type": "i\0", "url": "http://a.test/\0"}


@pytest.mark.parametrize("shown", [False, True])
def test_nul_in_what_the_model_says_which_may_cut_a_tag(*, shown: bool) -> None:
    turn = says("<thi\0nk>hm\0m</think\0>Yes", "\0", ".\0", usage={**USAGE, "currency": "U\0D"}, finish_reason="st\0op")

    outcome = run([[text([part("<think>a\0b</think>"), IMAGE]), *turn]], params={"emit_intermediate_thoughts": shown})

    assert outcome.error is None
    assert outcome.text.endswith("Yes.")
    assert ("hmm" in outcome.text) is shown
    assert free_of_nul(outcome)


@pytest.mark.parametrize("odd", ["\0", "\ud83d"], ids=["NUL", "half a pair"])
def test_what_a_failure_says(odd: str) -> None:
    """Its text may hold JSON, in which what must not leave us is an escape."""
    failing = {"search": breaks(str(fails("ValueError", f"a{odd}b")[0]), [message("text", text=f"a{odd}b")])}

    of_tool = run([calls(("search", {})), ANSWER], failing)
    of_model = run([fails("InvokeBadRequestError", f"a{odd}b")])

    assert (of_tool.error, of_tool.text) == (None, "Done.")
    assert "ab" in str(of_model.error) or "a?b" in str(of_model.error)
    assert free_of_nul(of_tool)
    assert free_of_nul(of_model)


@pytest.mark.parametrize(
    "arguments", ['{"q": "a\\u0000b"}', '{"q\\u0000": "a\\u0000b"}', '{"q": "a\\u0000b', '{"q": "a\0b"}']
)
def test_nul_in_the_arguments_of_a_call_is_said_in_the_log(arguments: str) -> None:
    outcome = run([calls(("search", arguments)), calls(("sea\0rch", arguments)), ANSWER], FOUND)

    assert outcome.error is None
    assert free_of_nul(outcome)
    assert all(request["tool_parameters"] == {"q": "ab"} for request in outcome.tools.requests)
    assert ("NUL characters were taken out of the arguments of a call" in outcome.notes) is ("\\u0000" in arguments)


def test_nul_in_an_array_that_was_written_as_its_text_and_in_an_answer() -> None:
    """JSON within JSON: its escapes are read when the text becomes an array."""
    array = {"type": "array", "items": {"type": "string", "minLength": 1}}
    params = {
        "tools": [tool("search", parameter("q", "array", input_schema=array))],
        "answer_schema": {"type": "object", "properties": {"q": array}},
    }
    given = {"q": '["a\\u0000b"]'}
    steps = [calls(("search", given)), calls(("submit_answer", {"q": ["\0"]})), calls(("submit_answer", given))]

    outcome = run(steps, FOUND, params)

    assert outcome.tools.requests[0]["tool_parameters"] == {"q": ["ab"]}
    assert outcome.variables["structured_output"] == {"q": ["ab"]}


def test_nul_in_a_plan() -> None:
    steps = [works_on("alpha", says("fou\0nd")), completed("alpha"), says("Yes.")]

    outcome = run([plans("al\0pha"), *steps], blueprint=PLAN_AND_REFLECT)

    assert outcome.variables["plan"] == ["alpha"]
    assert free_of_nul(outcome)
