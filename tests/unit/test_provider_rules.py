"""The strict reader takes a sound request, and every rule of it bites."""

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest
from dify_plugin.entities.model.llm import LLMModelConfig
from dify_plugin.entities.model.message import AssistantPromptMessage

from devhost.host import backwards
from devhost.models.scripted import model as devhosts
from devhost.protocol import structs
from tests.support.host import ScriptedModel, Tools, make_session
from tests.support.provider_rules import RULES, broken_rules
from tests.support.strict_reader import READER, StrictReader
from tests.support.wire import calls, says

type Json = dict[str, Any]
type Change = Callable[[list[Json], list[Json]], object]
"""Of the messages and the tools of the sound request."""

RULES_BY_NAME = {rule.name: rule for rule in RULES}
OWN_ID = "abcDEF123"
"""An id that every provider takes."""


def message(role: str, content: object, **more: Any) -> Json:  # noqa: ANN401 - passed on as it is
    return {"role": role, "content": content, "name": None, **more}


def call(call_id: str, name: str = "search", arguments: str = '{"q": "x"}') -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(call_id: str, name: str = "search") -> Json:
    return {**message("tool", "found"), "tool_call_id": call_id, "name": name}


def text(data: str) -> Json:
    return {"type": "text", "data": data, "opaque_body": None}


def tool(name: str, **properties: Json) -> Json:
    return {"name": name, "description": "Finds.", "parameters": {"type": "object", "properties": properties}}


def sound() -> Json:
    """A question with a picture, one round with two calls, and the answer; then the next question."""
    picture = {"type": "image", "format": "png", "mime_type": "image/png", "base64_data": "AAAA", "url": ""}
    messages = [
        message("system", "Answer."),
        message("user", [text("What is it?"), picture]),
        message("assistant", "", tool_calls=[call(OWN_ID), call("uvwXYZ456", "read_page")]),
        result(OWN_ID),
        result("uvwXYZ456", "read_page"),
        message("assistant", "It is this.", tool_calls=[]),
        message("user", "And now?"),
    ]
    search = tool(
        "search", q={"type": "string", "enum": ["x", "y"]}, all={"type": "array", "items": {"type": "string"}}
    )
    return {"provider": "p", "model": "m", "prompt_messages": messages, "tools": [search, tool("read_page")]}


def answered(*, first: str, second: str) -> Change:
    """The two calls and their results have these ids."""

    def change(messages: list[Json], _: list[Json]) -> None:
        for number, call_id in enumerate((first, second)):
            messages[2]["tool_calls"][number]["id"] = call_id
            messages[3 + number]["tool_call_id"] = call_id

    return change


def swapped(messages: list[Json], _: list[Json]) -> None:
    messages[3:5] = [messages[4], messages[3]]


def renamed(name: str) -> Change:
    """The first call and its result name another function."""

    def change(messages: list[Json], _: list[Json]) -> None:
        messages[2]["tool_calls"][0]["function"]["name"] = name
        messages[3]["name"] = name

    return change


ODD_ARGUMENTS: tuple[object, ...] = ("", "{", "[]", "null", {})


def called_with(arguments: object) -> Change:
    return lambda messages, _: messages[2]["tool_calls"][1]["function"].update(arguments=arguments)


BROKEN: list[tuple[str, Change, str]] = [
    ("known-role", lambda messages, _: messages[1].update(role="developer"), "prompt_messages[1].role"),
    ("blank-text", lambda messages, _: messages[0].update(content=""), "prompt_messages[0].content"),
    (
        "blank-text",
        lambda messages, _: messages[1]["content"][0].update(data=" \n"),
        "prompt_messages[1].content[0].data",
    ),
    ("blank-text", lambda messages, _: messages[2].update(content="\n\n"), "prompt_messages[2].content"),
    ("blank-text", lambda messages, _: messages[3].update(content=""), "prompt_messages[3].content"),
    ("message-with-content", lambda messages, _: messages[5].update(content=""), "prompt_messages[5].content"),
    ("message-with-content", lambda messages, _: messages[2].update(content=None), "prompt_messages[2].content"),
    ("message-with-content", lambda messages, _: messages[6].update(content=[]), "prompt_messages[6].content"),
    (
        "assistant-text",
        lambda messages, _: messages[5].update(content=[text("It"), text("is")]),
        "prompt_messages[5].content",
    ),
    ("system-first", lambda messages, _: messages.insert(1, message("system", "More.")), "prompt_messages[1]"),
    ("system-first", lambda messages, _: messages.insert(6, message("system", "More.")), "prompt_messages[6]"),
    ("user-first", lambda messages, _: messages.pop(1), "prompt_messages[1].role"),
    ("user-first", lambda messages, _: messages.clear(), "prompt_messages"),
    ("assistant-not-last", lambda messages, _: messages.pop(6), "prompt_messages[5].role"),
    ("user-after-tool", lambda messages, _: messages.pop(5), "prompt_messages[5]"),
    ("user-after-user", lambda messages, _: messages.append(message("user", "Go on.")), "prompt_messages[7]"),
    (
        "assistant-after-assistant",
        lambda messages, _: messages.insert(6, message("assistant", "Indeed.")),
        "prompt_messages[6]",
    ),
    ("call-answered", lambda messages, _: messages.pop(4), "prompt_messages[2].tool_calls[1].id"),
    ("result-of-a-call", lambda messages, _: messages.insert(5, result(OWN_ID)), "prompt_messages[5].tool_call_id"),
    ("result-of-a-call", lambda messages, _: messages.insert(6, result(OWN_ID)), "prompt_messages[6].tool_call_id"),
    ("results-in-order", swapped, "prompt_messages[3].tool_call_id"),
    ("result-named", lambda messages, _: messages[3].update(name=None), "prompt_messages[3].name"),
    ("tools-beside-calls", lambda _, tools: tools.clear(), "tools"),
    ("call-id-characters", answered(first="search:0", second="x"), "prompt_messages[2].tool_calls[0].id"),
    ("call-id-characters", answered(first="", second="x"), "prompt_messages[2].tool_calls[0].id"),
    ("call-id-of-40", answered(first="x" * 41, second="y" * 40), "prompt_messages[2].tool_calls[0].id"),
    ("call-id-of-64", answered(first="x" * 64, second="y" * 65), "prompt_messages[2].tool_calls[1].id"),
    ("call-id-of-nine", answered(first="call_1234", second="abcDEF123"), "prompt_messages[2].tool_calls[0].id"),
    ("call-id-once", answered(first=OWN_ID, second=OWN_ID), "prompt_messages[2].tool_calls[1].id"),
    ("call-id-once-in-turn", answered(first=OWN_ID, second=OWN_ID), "prompt_messages[2].tool_calls[1].id"),
    ("called-name", renamed("multi_tool_use.parallel"), "prompt_messages[2].tool_calls[0].function.name"),
    ("called-name", renamed(""), "prompt_messages[2].tool_calls[0].function.name"),
    *(
        ("arguments-object", called_with(arguments), "prompt_messages[2].tool_calls[1].function.arguments")
        for arguments in ODD_ARGUMENTS
    ),
    ("tool-name", lambda _, tools: tools[0].update(name="2search"), "tools[0].name"),
    ("tool-name", lambda _, tools: tools[0].update(name="mail.send"), "tools[0].name"),
    ("tool-name", lambda _, tools: tools[1].update(name="x" * 65), "tools[1].name"),
    ("tool-name-letter", lambda _, tools: tools[0].update(name="_search"), "tools[0].name"),
    ("tool-name-once", lambda _, tools: tools[1].update(name="search"), "tools[1].name"),
    ("tool-description", lambda _, tools: tools[1].update(description=""), "tools[1].description"),
    (
        "tools-up-to-128",
        lambda _, tools: tools.extend(tool(f"t{number}") for number in range(127)),
        "the number of tools",
    ),
    ("property-name", lambda _, tools: tools.append(tool("find", **{"$top": {}})), "tools[2].parameters.properties"),
    ("property-name", lambda _, tools: tools.append(tool("find", **{"x" * 65: {}})), "tools[2].parameters.properties"),
    ("parameters-object", lambda _, tools: tools[1].update(parameters={"type": "object"}), "tools[1].parameters"),
    ("parameters-object", lambda _, tools: tools[1].update(parameters={"properties": {}}), "tools[1].parameters"),
    ("parameters-no-union", lambda _, tools: tools[1]["parameters"].update(anyOf=[{}]), "tools[1].parameters.anyOf"),
    (
        "array-items",
        lambda _, tools: tools.append(tool("add", rows={"type": "array", "items": {"type": "array"}})),
        "tools[2].parameters.properties.rows.items",
    ),
    (
        "array-items",
        lambda _, tools: tools.append(tool("add", value={"anyOf": [{"type": ["null", "array"]}]})),
        "tools[2].parameters.properties.value.anyOf[0]",
    ),
    (
        "enum-of-texts",
        lambda _, tools: tools.append(tool("rate", stars={"type": "integer", "enum": [1, 2]})),
        "tools[2].parameters.properties.stars.enum",
    ),
]
WITH_OTHERS = {
    "known-role": {"user-first"},
    "user-first": {"assistant-not-last"},
    "result-of-a-call": {"user-after-tool"},
    "tool-name": {"tool-name-letter"},
    "call-id-of-40": {"call-id-of-nine"},
    "call-id-once": {"call-id-once-in-turn"},
    "call-id-once-in-turn": {"call-id-once"},
    "call-id-of-64": {"call-id-of-nine", "call-id-of-40"},
    "call-id-characters": {"call-id-of-nine"},
}
"""What a change of these breaks as well, because one rule is a part of the other."""


def test_a_sound_request_passes() -> None:
    assert broken_rules(sound()) == []


@pytest.mark.parametrize(("rule", "change", "where"), BROKEN, ids=[rule for rule, _, _ in BROKEN])
def test_every_rule_bites(rule: str, change: Change, where: str) -> None:
    request = sound()
    change(request["prompt_messages"], request["tools"])

    found = broken_rules(request)

    assert (rule, where) in [(broken.rule, broken.where) for broken in found]
    assert {broken.rule for broken in found} - {rule} <= WITH_OTHERS.get(rule, set())


def test_each_rule_has_a_broken_request_and_dated_evidence() -> None:
    assert RULES_BY_NAME.keys() == {rule for rule, _, _ in BROKEN}
    for rule in RULES:
        assert rule.sources
        for source in rule.sources.values():
            assert re.match(r"(run|documented|reported|read)\b", source)


@pytest.mark.parametrize("given", ["functions.search:0", "x" * 100, "call_1"])
def test_a_model_takes_back_the_ids_that_it_gave(given: str) -> None:
    request = sound()
    answered(first=given, second=f"{given}1")(request["prompt_messages"], request["tools"])

    assert broken_rules(request, {given, f"{given}1"}) == []
    assert "call-id-of-nine" in [broken.rule for broken in broken_rules(request)]


def test_a_picture_or_an_opaque_body_goes_back_in_a_list() -> None:
    for part in (sound()["prompt_messages"][1]["content"][1], {**text("hm"), "opaque_body": {"signature": "s"}}):
        request = sound()
        request["prompt_messages"][5]["content"] = [text("Look:"), part]

        assert broken_rules(request) == []


# The reader.


def without_a_result() -> Json:
    request = sound()
    request["prompt_messages"].pop(4)
    return request


def test_a_failure_names_the_provider_the_rule_the_place_and_the_value() -> None:
    reader = StrictReader()
    list(reader.answers(without_a_result(), says("ok")))

    with pytest.raises(AssertionError) as failure:
        reader.check()

    assert str(failure.value).endswith(
        "Anthropic, DeepSeek, Gemini 2.5, Gemini 3, Mistral, Moonshot, OpenAI Chat: call-answered: every call has a "
        'result directly behind its message; but prompt_messages[2].tool_calls[1].id is "uvwXYZ456"'
    )
    reader.check()


def test_a_long_value_is_cut_and_many_broken_rules_are_counted() -> None:
    request = sound()
    request["tools"] = [{**tool(f"t{number}"), "description": ""} for number in range(25)]
    request["tools"][0]["name"] = "x" * 300
    reader = StrictReader()
    list(reader.answers(request, says("ok")))

    with pytest.raises(AssertionError, match=r"tools\[0\]\.name is \"x{199}…\n") as failure:
        reader.check()

    assert str(failure.value).endswith("\nand 6 more")


def reading(reader: StrictReader, model: str, request: Json, chunks: list[Any]) -> list[str]:
    """The rules that a request of this model breaks."""
    list(reader.answers({**copy.deepcopy(request), "model": model}, chunks))
    return [broken.rule for broken in reader.taken()]


def test_the_reader_knows_which_model_gave_an_id() -> None:
    request = sound()
    given = "x" * 41
    answered(first=given, second="uvwXYZ456")(request["prompt_messages"], request["tools"])
    reader = StrictReader()
    first = calls(("search", {"q": "x"}))
    first[-1]["delta"]["message"]["tool_calls"][0]["id"] = given

    assert reading(reader, "a", sound(), first) == []
    assert reading(reader, "a", request, says("ok")) == []
    assert "call-id-of-40" in reading(reader, "b", request, says("ok"))
    reader.forget()
    assert "call-id-of-40" in reading(reader, "a", request, says("ok"))
    reader.gave("p", "a", [given])
    assert reading(reader, "a", request, says("ok")) == []


def test_what_a_session_sends_is_read() -> None:
    session, _ = make_session(ScriptedModel([says("ok")]), Tools({}))
    config = LLMModelConfig(provider="p", model="m", mode="chat", completion_params={})

    list(session.model.llm.invoke(config, [AssistantPromptMessage(content="Hello.")], stream=True))

    assert [broken.rule for broken in READER.taken()] == ["user-first", "assistant-not-last"]


def test_what_devhost_answers_is_read() -> None:
    reader = StrictReader()
    request = without_a_result()
    request |= {"model_type": "llm", "mode": "chat", "completion_params": {}, "stop": [], "stream": True}
    model = devhosts.ScriptedModel.of([{"text": "ok"}])
    with reader.reads_devhost():
        answer = vars(backwards)["model_answer"]  # under this name the host looks it up
        list(answer(model, structs.LLM, request, "drop"))

    assert [broken.rule for broken in reader.taken()] == ["call-answered"]
