"""One conversation with the model: append-only, and valid for every provider at any time."""

import json
from collections.abc import Callable
from itertools import zip_longest
from typing import Any
from unittest.mock import patch

import pytest
from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    ImagePromptMessageContent,
    PromptMessage,
    PromptMessageContentUnionTypes,
    SystemPromptMessage,
    TextPromptMessageContent,
    ToolPromptMessage,
    UserPromptMessage,
)
from hypothesis import given
from hypothesis import strategies as st

from internal.call import EndedCall, ToolCall
from internal.host.session import carries_opaque_body
from internal.tooling import MAX_ARGUMENTS_LENGTH
from internal.transcript import transcript as transcript_module
from internal.transcript.transcript import (
    SHORTENINGS,
    Content,
    HostHabits,
    Transcript,
    Weight,
    weight_of,
    without_first_medium,
    without_result,
)
from prompt import template
from tests.unit.builders import ended
from tests.unit.generators import any_text, json_objects, readable_text, text_from_the_host

OPENING: list[PromptMessage] = [
    SystemPromptMessage(content="system"),
    AssistantPromptMessage(content="before"),
    UserPromptMessage(content="question"),
]
IMAGE = ImagePromptMessageContent(format="png", base64_data="AAAA", mime_type="image/png")


def result(call_id: str, name: str, arguments: str, text: str) -> EndedCall:
    return ended(ToolCall(call_id, name, arguments), text)


results = st.builds(
    result,
    call_id=st.sampled_from(["c1", "c2", "search"]) | readable_text.filter(bool),
    name=st.sampled_from(["search", "", "fetch"]) | readable_text,
    arguments=json_objects.map(json.dumps) | any_text | st.just(""),
    text=text_from_the_host | st.just("long result " * 30),
)
parts: st.SearchStrategy[PromptMessageContentUnionTypes] = st.one_of(
    st.builds(TextPromptMessageContent, data=readable_text), st.just(IMAGE)
)
contents: st.SearchStrategy[Content] = st.one_of(text_from_the_host, st.lists(parts, max_size=3))


def append(transcript: Transcript, data: st.DataObject) -> None:
    transcript.append_round(data.draw(contents), {"opaque": 1}, data.draw(st.lists(results, min_size=1, max_size=3)))


def shorten(transcript: Transcript, data: st.DataObject) -> None:
    """Once, or until nothing is left."""
    left = iter([False] * data.draw(st.integers(0, 5)))
    transcript.shorten(data.draw(st.sampled_from([*SHORTENINGS.values()])), lambda: next(left, True))


def drop_opaque(transcript: Transcript, _: st.DataObject) -> None:
    transcript.drop_opaque_bodies()


STEPS: list[Callable[[Transcript, st.DataObject], None]] = [append, append, shorten, drop_opaque]


def calls_and_answers(messages: list[PromptMessage]) -> list[tuple[AssistantPromptMessage, list[PromptMessage]]]:
    """Every assistant turn that called tools, with the messages up to the next turn."""
    turns: list[tuple[AssistantPromptMessage, list[PromptMessage]]] = []
    for message in messages:
        if isinstance(message, AssistantPromptMessage):
            turns.append((message, []))
        elif turns:
            turns[-1][1].append(message)
    return turns


def assert_valid_for_every_provider(messages: list[PromptMessage]) -> None:
    for turn, answers in calls_and_answers(messages):
        assert turn.content is not None
        for call, answer in zip_longest(turn.tool_calls, answers):
            assert isinstance(answer, ToolPromptMessage)
            assert answer.tool_call_id == call.id != ""
            assert answer.name == call.function.name != ""
            assert answer.content is not None
            assert isinstance(json.loads(call.function.arguments), dict)
    for message in messages:
        assert message.model_dump_json()


def only_grew(before: list[PromptMessage], after: list[PromptMessage]) -> bool:
    """Of the messages that were there, only results, media and opaque bodies have changed."""

    def bones(message: PromptMessage) -> Any:  # noqa: ANN401 - JSON
        shrinks = isinstance(message, ToolPromptMessage) or isinstance(message.content, list)
        return message.model_dump(mode="json", exclude={"opaque_body"} | ({"content"} if shrinks else set()))

    return list(map(bones, before)) == list(map(bones, after[: len(before)]))


@given(st.lists(st.sampled_from(STEPS), max_size=10), st.data())
def test_after_any_steps_every_call_has_its_answer_and_the_prefix_is_unchanged(
    steps: list[Callable[[Transcript, st.DataObject], None]], data: st.DataObject
) -> None:
    transcript = Transcript(OPENING)
    for step in steps:
        before = transcript.messages()
        step(transcript, data)
        after = transcript.messages()
        if step is append:
            assert after[: len(before)] == before
        assert only_grew(before, after)
        assert after[: len(OPENING)] == OPENING
        assert_valid_for_every_provider(after[len(OPENING) :])
        assert transcript.weight == sum(map(weight_of, after), Weight())
    assert transcript.rounds == steps.count(append)


def one_round(*items: EndedCall, content: str = "", opaque: object = None) -> Transcript:
    transcript = Transcript(OPENING)
    transcript.append_round(content, opaque, items)
    return transcript


def test_a_round_is_one_turn_and_one_result_per_call_in_their_order() -> None:
    transcript = one_round(
        result("b", "fetch", '{ "u":1 }', "one"),
        result("a", "search", "", "two"),
        content="<think>x</think>Hm.",
        opaque={"o": 1},
    )

    turn, *answers = transcript.messages()[len(OPENING) :]
    assert isinstance(turn, AssistantPromptMessage)
    assert (turn.content, turn.opaque_body) == ("<think>x</think>Hm.", {"o": 1})
    assert [(call.id, call.function.arguments) for call in turn.tool_calls] == [("b", '{ "u":1 }'), ("a", "{}")]
    assert [(answer.content, answer.name) for answer in answers] == [("one", "fetch"), ("two", "search")]


def test_arguments_that_do_not_parse_are_written_back_as_an_empty_object() -> None:
    turn = one_round(result("a", "search", '{"q": ', "parse error")).messages()[-2]

    assert isinstance(turn, AssistantPromptMessage)
    assert turn.tool_calls[0].function.arguments == "{}"


@pytest.mark.parametrize(
    ("called", "written"),
    [
        ("multi_tool_use.parallel", "multi_tool_use_parallel"),
        ("検索 x", "___x"),
        ("n" * 100, "n" * 64),
        ("", "unnamed"),
    ],
)
def test_a_name_that_an_api_would_refuse_is_rewritten(called: str, written: str) -> None:
    turn, answer = one_round(result("a", called, "{}", "unknown tool")).messages()[-2:]

    assert isinstance(turn, AssistantPromptMessage)
    assert isinstance(answer, ToolPromptMessage)
    assert (turn.tool_calls[0].function.name, answer.name) == (written, written)


@pytest.mark.parametrize("nothing", ["", " \n", []])
def test_a_turn_with_nothing_in_it_is_left_out(nothing: Content) -> None:
    transcript = Transcript(OPENING)
    transcript.append_answer(nothing, None)
    assert transcript.messages() == OPENING

    transcript.append_answer(nothing, {"sealed": 1})
    assert len(transcript.messages()) == len(OPENING) + 1


def test_a_note_is_a_user_message_at_the_end() -> None:
    transcript = one_round(result("a", "search", "", "one"))
    before = transcript.messages()
    transcript.append_note("Answer now.")

    assert transcript.messages() == [*before, UserPromptMessage(content="Answer now.")]


def test_the_list_of_messages_is_the_callers() -> None:
    transcript = Transcript(OPENING)
    transcript.messages().clear()

    assert transcript.messages() == OPENING


def test_opaque_bodies_are_dropped_for_good() -> None:
    transcript = one_round(result("a", "search", "", "one"), opaque={"o": 1})
    assert any(map(carries_opaque_body, transcript.messages()))

    transcript.drop_opaque_bodies()
    transcript.append_round("", {"o": 2}, [result("b", "search", "", "two")])

    assert not any(map(carries_opaque_body, transcript.messages()))


def test_opaque_bodies_of_parts_are_dropped_too() -> None:
    sealed: list[PromptMessageContentUnionTypes] = [TextPromptMessageContent(data="hm", opaque_body={"o": 1}), IMAGE]
    transcript = Transcript(OPENING)
    transcript.append_answer(sealed, None)
    assert any(map(carries_opaque_body, transcript.messages()))

    transcript.drop_opaque_bodies()

    assert not any(map(carries_opaque_body, transcript.messages()))
    assert transcript.messages()[-1].content == [TextPromptMessageContent(data="hm"), IMAGE]


def test_arguments_that_no_request_could_carry_are_written_back_as_an_empty_object() -> None:
    endless = json.dumps({"q": "x" * MAX_ARGUMENTS_LENGTH})

    turn = one_round(result("a", "search", endless, "too large")).messages()[-2]

    assert isinstance(turn, AssistantPromptMessage)
    assert turn.tool_calls[0].function.arguments == "{}"


def test_results_shrink_once_and_oldest_first() -> None:
    transcript = one_round(
        *(result(name, "search", "", name * 200) for name in "abc"), result("d", "search", "", "short")
    )
    first = len(OPENING) + 1

    assert transcript.shorten(without_result, lambda: transcript.messages()[first].content != "a" * 200) == 1
    assert transcript.messages()[first].content == template.ELIDED_TOOL_RESULT
    assert transcript.shorten(without_result) == 2
    assert transcript.shorten(without_result) == 0
    assert [str(message.content)[0] for message in transcript.messages()[first:]] == ["[", "[", "[", "s"]


def test_media_shrink_to_a_note_that_names_their_kind_one_by_one() -> None:
    text = TextPromptMessageContent(data="see")
    first, second = UserPromptMessage(content=[text, IMAGE, IMAGE]), UserPromptMessage(content=[IMAGE])
    transcript = Transcript([first, second])

    assert transcript.shorten(without_first_medium, lambda: transcript.messages()[0] != first) == 1

    note = TextPromptMessageContent(data="[image left out here to save space]")
    assert [message.content for message in transcript.messages()] == [[text, note, IMAGE], [IMAGE]]
    assert transcript.shorten(without_first_medium) == 2


def test_a_message_is_weighed_once_however_many_rounds_follow() -> None:
    transcript = Transcript(OPENING)
    with patch.object(transcript_module, "weight_of", side_effect=weight_of) as weigh:
        for _ in range(50):
            transcript.append_round("", None, [result("a", "search", "", "one")])
            assert transcript.weight.tokens
            assert transcript.messages()

    assert weigh.call_count == 100


def test_the_results_of_later_rounds_are_those_since() -> None:
    transcript, lengths = Transcript(OPENING), list[int]()
    for said in ("one", "two", "three"):
        transcript.append_round("", None, [result("a", "search", "", said), result("b", "search", "", said.upper())])
        transcript.append_note("Go on.")
        lengths.append(transcript.length)

    assert transcript.results_since(lengths[0]) == ["two", "TWO", "three", "THREE"]
    assert transcript.results_since(lengths[2]) == []


def test_what_one_conversation_learns_of_the_host_applies_to_the_whole_run() -> None:
    habits = HostHabits()
    first, second = (Transcript([UserPromptMessage(content="Why?")], habits) for _ in range(2))
    for transcript in (first, second):
        transcript.append_answer("Because.", {"sealed": 1})
    assert any(map(carries_opaque_body, second.messages()))

    first.drop_opaque_bodies()

    assert not any(map(carries_opaque_body, second.messages()))
    assert [getattr(message, "opaque_body", None) for message in second.messages()] == [None, None]
