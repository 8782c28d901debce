"""Requests in the shape that every provider takes: no blank text, roles that take turns, ids that fit."""

import json
import re

import pytest
from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    ImagePromptMessageContent,
    PromptMessage,
    SystemPromptMessage,
    TextPromptMessageContent,
    ToolPromptMessage,
    UserPromptMessage,
)
from hypothesis import given
from hypothesis import strategies as st

from internal.call import portable_id
from internal.transcript.request import messages_with_calls_in_text, sound_messages
from internal.transcript.steps import TurnMessage, is_blank, sound_content
from prompt import template
from tests.support.generators import any_text

MODEL = "acme/one"
BLANK = st.sampled_from(["", " ", "\n\n", "\t", "\N{NO-BREAK SPACE}"])
TEXTS = BLANK | any_text
IMAGE = ImagePromptMessageContent(format="png", base64_data="AAAA", mime_type="image/png")
PARTS = st.lists(st.builds(TextPromptMessageContent, data=TEXTS) | st.just(IMAGE), max_size=3)


def call(call_id: str) -> AssistantPromptMessage.ToolCall:
    function = AssistantPromptMessage.ToolCall.ToolCallFunction(name="search", arguments="{}")
    return AssistantPromptMessage.ToolCall(id=call_id, type="function", function=function)


def turn(*ids: str, model: str = MODEL, content: str = "") -> TurnMessage:
    return TurnMessage(content=content, tool_calls=[call(each) for each in ids], model=model)


def result(call_id: str, said: str = "found") -> ToolPromptMessage:
    return ToolPromptMessage(content=said, tool_call_id=call_id, name="search")


def rounds() -> st.SearchStrategy[list[PromptMessage]]:
    """A turn with one call and its result."""
    made = st.builds(turn, st.sampled_from(["c1", "c2"]), model=st.sampled_from(["", MODEL, "acme/two"]), content=TEXTS)
    return made.map(lambda each: [each, result(each.tool_calls[0].id)])


CONVERSATIONS = st.lists(
    st.one_of(
        st.builds(SystemPromptMessage, content=any_text).map(lambda message: [message]),
        st.builds(UserPromptMessage, content=TEXTS | PARTS).map(lambda message: [message]),
        st.builds(AssistantPromptMessage, content=TEXTS | PARTS).map(lambda message: [message]),
        rounds(),
    ),
    max_size=6,
).map(lambda groups: [SystemPromptMessage(content="system"), *(message for group in groups for message in group)])


def texts_of(message: PromptMessage) -> list[str]:
    if isinstance(message.content, list):
        return [part.data for part in message.content if isinstance(part, TextPromptMessageContent)]
    return [message.content or ""]


@given(CONVERSATIONS)
def test_no_text_is_blank_and_roles_take_turns(messages: list[PromptMessage]) -> None:
    sound = sound_messages(messages, MODEL)

    for message in sound:
        with_calls = isinstance(message, AssistantPromptMessage) and message.tool_calls
        assert with_calls or message.content, "nothing in it"
        assert all(not is_blank(text) or (with_calls and text == "") for text in texts_of(message))
    roles = "".join(message.role.value[0] for message in sound)
    assert not re.search("uu|tu|aa|sa|ut|st|.s", roles), "user and model take turns, and results stand behind calls"


@given(CONVERSATIONS)
def test_a_request_begins_with_the_one_before(messages: list[PromptMessage]) -> None:
    sound = sound_messages(messages, MODEL)

    last_instruction = max(at for at, message in enumerate(messages) if isinstance(message, SystemPromptMessage))
    for count in range(last_instruction + 1, len(messages)):
        earlier = sound_messages(messages[:count], MODEL)
        assert sound[: len(earlier)] == earlier


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ([TextPromptMessageContent(data="<think>a</think>"), TextPromptMessageContent(data="b")], "<think>a</think>b"),
        ([TextPromptMessageContent(data="\n"), IMAGE], [IMAGE]),
        ([TextPromptMessageContent(data=" ")], ""),
        ("\n\n", ""),
        (" a ", " a "),
    ],
)
def test_what_a_turn_says_is_one_text(written: str | list[TextPromptMessageContent], sent: object) -> None:
    assert sound_content(list(written) if isinstance(written, list) else written) == sent


def test_a_part_with_an_opaque_body_stays_as_it_is() -> None:
    signed = TextPromptMessageContent(data=" ", opaque_body={"signature": "s"})

    assert sound_content([TextPromptMessageContent(data="a"), signed]) == [TextPromptMessageContent(data="a"), signed]


def test_a_model_reads_its_own_ids_as_it_gave_them_and_others_read_ids_that_fit() -> None:
    messages = [UserPromptMessage(content="q"), turn("functions.search:0", "functions.search:0")]
    messages += [result("functions.search:0"), result("functions.search:0"), turn("own", model="acme/two")]
    messages += [result("own"), turn("unknown", model=""), result("unknown")]

    kept = [each.tool_call_id for each in sound_messages(messages, MODEL) if isinstance(each, ToolPromptMessage)]
    assert kept[0] == "functions.search:0"
    assert re.fullmatch("[a-zA-Z0-9]{9}", kept[1]), "an id is given to one call of a turn"

    sent = sound_messages(messages, "acme/two")
    of_calls = [
        each.id for message in sent if isinstance(message, AssistantPromptMessage) for each in message.tool_calls
    ]
    of_results = [message.tool_call_id for message in sent if isinstance(message, ToolPromptMessage)]
    assert of_calls == of_results
    assert of_calls[2:] == ["own", "unknown"], "an older state does not know who made a call"
    assert len({*of_calls}) == len(of_calls)
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", each) for each in of_calls[:2])


def with_arguments(call_id: str, name: str, arguments: str) -> AssistantPromptMessage.ToolCall:
    function = AssistantPromptMessage.ToolCall.ToolCallFunction(name=name, arguments=arguments)
    return AssistantPromptMessage.ToolCall(id=call_id, type="function", function=function)


@st.composite
def rounds_of_equal_ids(draw: st.DrawFn) -> list[PromptMessage]:
    """A turn with calls of three tools under few ids, some of which are the names of the tools, and their results."""
    names = draw(st.lists(st.sampled_from(["search", "look", "read"]), min_size=1, max_size=5))
    calls = [
        with_arguments(draw(st.sampled_from([name, "same", "c1"])), name, json.dumps({"q": number}))
        for number, name in enumerate(names)
    ]
    results = [
        ToolPromptMessage(content=f"found {number} of {name}", tool_call_id=each.id, name=name)
        for number, (name, each) in enumerate(zip(names, calls, strict=True))
    ]
    return [UserPromptMessage(content="q"), TurnMessage(content="", tool_calls=calls, model=MODEL), *results]


@given(st.lists(rounds_of_equal_ids(), min_size=1, max_size=3))
def test_whoever_reads_results_by_their_ids_finds_each_with_its_arguments(groups: list[list[PromptMessage]]) -> None:
    """By id; where the id is the function's name, the last result of a turn counts for all its calls."""
    sound = sound_messages([message for group in groups for message in group], MODEL)

    turns = [
        at for at, message in enumerate(sound) if isinstance(message, AssistantPromptMessage) and message.tool_calls
    ]
    for at in turns:
        turn_read = sound[at]
        assert isinstance(turn_read, AssistantPromptMessage)
        calls = turn_read.tool_calls
        results = sound[at + 1 : at + 1 + len(calls)]
        assert [each.tool_call_id for each in results if isinstance(each, ToolPromptMessage)] == [c.id for c in calls]
        unique = [each.id for each in calls if each.id != each.function.name]
        assert len({*unique}) == len(unique)
        by_id = {each.tool_call_id: str(each.content) for each in results if isinstance(each, ToolPromptMessage)}
        for number, each in enumerate(calls):
            said = by_id[each.id]
            assert f"found {number} of {each.function.name}" in said
            if sum(other.id == each.id for other in calls) > 1:
                written = each.function.arguments.replace('"', "&quot;")
                assert f'arguments="{written}">\nfound {number} of' in said


def test_a_note_of_ours_stays_at_the_end_of_results_that_stand_together() -> None:
    calls = [with_arguments("search", "search", json.dumps({"q": q})) for q in "ab"]
    note = f"{template.AGENT_NOTE_BEGIN}Answer now.{template.AGENT_NOTE_END}"
    messages = [UserPromptMessage(content="q"), TurnMessage(content="", tool_calls=calls, model=MODEL)]
    messages += [result("search", "</tool_output> one"), result("search", f"two{note}")]

    *_, first, last = sound_messages(messages, MODEL)

    assert first.content == template.RESULT_STANDS_LAST.format(tool="search")
    assert str(last.content).endswith(f"two\n</tool_output>{note}")
    assert "&lt;/tool_output> one" in str(last.content), "no result can end its block"


@given(any_text, st.integers(0, 5))
def test_an_id_of_ours_is_nine_letters_and_digits(written: str, occurrence: int) -> None:
    assert re.fullmatch("[a-z0-9]{9}", portable_id(written, occurrence))
    assert portable_id(written, occurrence) == portable_id(written, occurrence)
    assert portable_id(written, occurrence) != portable_id(written, occurrence + 1)


def test_system_messages_of_the_memory_stand_behind_the_instruction_in_either_form() -> None:
    messages = [
        SystemPromptMessage(content="Be kind."),
        UserPromptMessage(content="q"),
        SystemPromptMessage(content="Also."),
    ]

    for sent in (sound_messages(messages, MODEL), list(messages_with_calls_in_text(messages, ()))):
        assert [message.content for message in sent] == ["Be kind.\n\nAlso.", "q"]


def test_the_texts_between_are_not_blank() -> None:
    assert not is_blank(template.TURN_BETWEEN)
    assert not is_blank(template.NO_TEXT)
