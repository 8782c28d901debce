"""One conversation with the model: append-only, valid for every provider, within the model's window and a request."""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    ImagePromptMessageContent,
    PromptMessage,
    PromptMessageContentUnionTypes,
    PromptMessageTool,
    SystemPromptMessage,
    TextPromptMessageContent,
    ToolPromptMessage,
    UserPromptMessage,
)
from hypothesis import given
from hypothesis import strategies as st

from internal.call import ToolCall, ToolOutcome
from internal.host.session import HostSession, ModelRequest, without_opaque_body
from internal.node.model import ModelSelection
from internal.tooling import MAX_ARGUMENTS_LENGTH
from internal.transcript.steps import AssistantText, Content
from internal.transcript.transcript import SHORTENINGS, Transcript, Weight, Window, estimate_tokens, weight_of
from prompt import template
from tests.support.builders import conversation, outcome_of, round_of
from tests.support.generators import any_text, json_objects, json_values, readable_text, text_from_the_host
from tests.support.host import ScriptedModel, Tools, make_session
from tests.support.scenes import check_prompt
from tests.support.wire import model, says

OPENING: list[PromptMessage] = [
    SystemPromptMessage(content="system"),
    AssistantPromptMessage(content="before"),
    UserPromptMessage(content="question"),
]


def image(size: int = 4) -> ImagePromptMessageContent:
    return ImagePromptMessageContent(format="png", base64_data="A" * size, mime_type="image/png")


def result(call_id: str, name: str, arguments: str, text: str) -> ToolOutcome:
    return outcome_of(ToolCall(call_id, name, arguments), text)


def transcript_of(*results: str, opening: Sequence[PromptMessage] = OPENING) -> Transcript:
    """A round per result."""
    transcript = conversation(*opening)
    for number, text in enumerate(results):
        transcript.append(round_of(result(f"c{number}", "search", "{}", text)))
    return transcript


# --- every conversation ----------------------------------------------------------------------------------------------

results = st.builds(
    result,
    call_id=st.sampled_from(["c1", "c2", "search"]) | readable_text.filter(bool),
    name=st.sampled_from(["search", "", "fetch"]) | readable_text,
    arguments=json_objects.map(json.dumps) | any_text | st.just(""),
    text=text_from_the_host.filter(bool) | st.just("long result " * 30),
)
parts: st.SearchStrategy[PromptMessageContentUnionTypes] = st.one_of(
    st.builds(TextPromptMessageContent, data=readable_text), st.builds(image)
)
contents: st.SearchStrategy[Content] = st.one_of(text_from_the_host, st.lists(parts, max_size=3))


def append(transcript: Transcript, data: st.DataObject) -> None:
    content = data.draw(contents)
    outcomes = data.draw(st.lists(results, min_size=1, max_size=3))
    transcript.append(round_of(*outcomes, content=content, opaque_body={"opaque": 1}))


def shorten(transcript: Transcript, data: st.DataObject) -> None:
    """Once, or until nothing is left."""
    left = iter([False] * data.draw(st.integers(0, 5)))
    transcript.shorten(data.draw(st.sampled_from([*SHORTENINGS.values()])), lambda: next(left, True))


STEPS: list[Callable[[Transcript, st.DataObject], None]] = [append, append, shorten]


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
    transcript = conversation(*OPENING)
    for step in steps:
        before = transcript.messages()
        step(transcript, data)
        after = transcript.messages()
        if step is append:
            assert after[: len(before)] == before
        assert only_grew(before, after)
        assert after[: len(OPENING)] == OPENING
        check_prompt([message.model_dump(mode="json") for message in after])
        assert transcript.weight == sum(map(weight_of, after), Weight())
    assert transcript.rounds == steps.count(append)


@pytest.mark.parametrize(
    ("called", "written"),
    [
        ("multi_tool_use.parallel", "multi_tool_use_parallel"),
        ("検索 x", "tool____x"),
        ("n" * 100, "n" * 64),
        ("", "unnamed"),
    ],
)
def test_names_and_arguments_that_an_api_would_refuse_are_rewritten(called: str, written: str) -> None:
    transcript = conversation(*OPENING)
    arguments = json.dumps({"q": "x" * MAX_ARGUMENTS_LENGTH})
    transcript.append(round_of(result("a", called, arguments, "unknown tool")))

    turn, answer = transcript.messages()[-2:]
    assert isinstance(turn, AssistantPromptMessage)
    assert isinstance(answer, ToolPromptMessage)
    assert (turn.tool_calls[0].function.name, answer.name) == (written, written)
    assert turn.tool_calls[0].function.arguments == "{}"


@pytest.mark.parametrize("nothing", ["", " \n", []])
def test_a_turn_with_nothing_in_it_is_left_out(nothing: Content) -> None:
    transcript = conversation(*OPENING)
    transcript.append(AssistantText(nothing))
    assert transcript.messages() == OPENING

    transcript.append(AssistantText(nothing, {"sealed": 1}))
    assert len(transcript.messages()) == len(OPENING) + 1


# --- what fits into the model's window and into one line to the host -------------------------------------------------


def left_in(transcript: Transcript) -> str:
    """Of each image and each result the first letter, "-" where it became a note; "*" for an opaque body."""
    left = ""
    for message in transcript.messages():
        content = message.content if isinstance(message.content, list) else []
        left += "".join("i" if part.type.value == "image" else "-" for part in content[1:])
        if isinstance(message, ToolPromptMessage):
            left += "-" if message.content == template.ELIDED_TOOL_RESULT else str(message.content)[0]
        left += "*" * (without_opaque_body(message) is not message)
    return left


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("abcd", 1), ("abc", 0), ("日本語", 3), ("abcd日本", 3), ("a" * 400, 100), ("é" * 4, 4)],
)
def test_tokens_are_estimated_without_a_tokenizer(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@pytest.mark.parametrize(
    ("context_size", "max_tokens", "left"),
    [(None, 100, math.inf), (1000, 0, 1000), (1000, 100, 900), (1000, 500, 500), (1000, 8192, 500)],
)
def test_the_answer_has_its_share_of_the_window_and_never_more_than_half(
    context_size: int | None, max_tokens: int, left: float
) -> None:
    assert Window((), context_size, max_tokens).prompt_tokens == left


def test_a_prompt_that_fits_or_has_nothing_to_leave_out_is_sent_unchanged() -> None:
    fits = transcript_of("a" * 4000)
    has_only_a_question = conversation(UserPromptMessage(content="x" * 100_000))

    assert [*Window((), 10_000).fit(fits), *Window(()).fit(transcript_of("a" * 200_000))] == []
    assert [*Window((), 1_000).fit(has_only_a_question), *Window((), 1_000).shrink(has_only_a_question)] == []
    assert fits.messages()[-1].content == "a" * 4000


@pytest.mark.parametrize(("context_size", "max_tokens"), [(10_000, 0), (20_000, 10_000)])
def test_over_the_window_the_oldest_results_become_notes_until_three_quarters_are_reached_and_stay_so(
    context_size: int, max_tokens: int
) -> None:
    transcript = transcript_of(*(letter * 4_000 for letter in "abcdefghijk"))
    window = Window((), context_size, max_tokens)
    assert window.weigh(transcript).tokens > 10_000

    (note,) = window.fit(transcript)

    assert left_in(transcript) == "----efghijk"
    assert window.weigh(transcript).tokens <= 7_500 < window.weigh(transcript).tokens + 1_000
    assert "4 tool results" in note
    before = transcript.messages()
    assert list(window.fit(transcript)) == []
    assert transcript.messages() == before


@pytest.mark.parametrize(
    ("limit", "left"), [(90_000, "-iab*"), (70_000, "--ab*"), (50_000, "---b*"), (30_000, "----*"), (9_000, "----")]
)
def test_over_the_line_limit_oldest_images_yield_first_then_oldest_results_then_opaque_bodies(
    limit: int, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("internal.transcript.transcript.MAX_REQUEST_BYTES", limit)
    pictures: list[PromptMessageContentUnionTypes] = [
        TextPromptMessageContent(data="see"),
        *(image(20_000) for _ in range(2)),
    ]
    transcript = transcript_of("a" * 20_000, "b" * 20_000, opening=[UserPromptMessage(content=pictures)])
    transcript.append(AssistantText("Because.", {"sealed": "s" * 20_000}))

    (note,) = Window(()).fit(transcript)

    assert left_in(transcript) == left
    assert ("1 opaque bodies" in note) == ("*" not in left)


def test_opaque_bodies_count_as_tokens_too() -> None:
    transcript = conversation(UserPromptMessage(content="Why?"))
    for body in ("a" * 40_000, "b" * 4_000):
        transcript.append(AssistantText("Because.", {"sealed": body}))
    assert Window(()).weigh(transcript).tokens > 11_000

    (note,) = Window((), 10_000).fit(transcript)

    assert left_in(transcript) == "*"
    assert "1 opaque bodies" in note


@pytest.mark.parametrize(
    ("limit", "left", "told"),
    [
        (12_000, "--**", "2 opaque bodies"),
        (8_000, "---*", "3 opaque bodies"),
        (1_500, "----", "4 opaque bodies"),
        (900, "****", ""),
    ],
    ids=["a little too much", "much too much", "hardly room for the rest", "too much without them"],
)
def test_reasoning_kept_for_a_provider_goes_first_where_it_alone_is_too_much(limit: int, left: str, told: str) -> None:
    transcript = conversation(UserPromptMessage(content="Why? " + "x" * 4_000))
    for _ in range(4):
        transcript.append(AssistantText("Because.", {"sealed": "s" * 12_000}))

    notes = list(Window(()).leave_out_what_is_no_text(transcript, limit))

    bodies = [without_opaque_body(each) is not each for each in transcript.messages()[1:]]
    assert "".join("-*"[has_body] for has_body in bodies) == left
    assert [told in note for note in notes] == [True] * bool(told)


def length_on_the_wire(transcript: Transcript, tools: list[PromptMessageTool]) -> int:
    """The longest line that the SDK itself writes for this request."""
    session, transport = make_session(ScriptedModel([says("ok")]), Tools({}), is_read=False)
    config = ModelSelection.read(model(), list[str]().append).config
    request = ModelRequest(config, transcript.messages(), tools)
    list(HostSession(session).stream_model(request, "0", lambda: 10.0, 10.0))
    return transport.longest_line


@given(st.data(), st.lists(st.tuples(readable_text, st.dictionaries(readable_text, json_values)), max_size=3))
def test_the_weight_is_never_smaller_than_the_line_that_is_written(
    data: st.DataObject, described: list[tuple[str, dict[str, Any]]]
) -> None:
    tools = [PromptMessageTool(name="t", description=text, parameters=schema) for text, schema in described]
    parts: list[PromptMessageContentUnionTypes] = [TextPromptMessageContent(data=data.draw(readable_text)), image(500)]
    transcript = conversation(*OPENING, UserPromptMessage(content=parts))
    for _ in range(data.draw(st.integers(0, 2))):
        append(transcript, data)

    assert Window(tools).weigh(transcript).size >= length_on_the_wire(transcript, tools)
