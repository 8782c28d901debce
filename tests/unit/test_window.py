"""A request that fits into the model's context window and into one line to the host."""

from collections.abc import Sequence
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
    UserPromptMessage,
)
from hypothesis import given
from hypothesis import strategies as st

from internal.call import ToolCall
from internal.errors import InvalidParameters
from internal.host.session import MAX_REQUEST_BYTES, HostSession, ModelRequest, carries_opaque_body
from internal.node.model import ModelSelection
from internal.transcript.transcript import Transcript, Window, estimate_tokens
from prompt import template
from tests.support.host import ScriptedModel, Tools, make_session
from tests.support.wire import model, says
from tests.unit.builders import ended
from tests.unit.generators import json_values, readable_text, text_from_the_host

QUESTION = UserPromptMessage(content="question")


def image(size: int) -> ImagePromptMessageContent:
    return ImagePromptMessageContent(format="png", base64_data="A" * size, mime_type="image/png")


def transcript_of(*results: str, opening: Sequence[PromptMessage] = (QUESTION,)) -> Transcript:
    """A round per result."""
    transcript = Transcript(opening)
    for number, text in enumerate(results):
        transcript.append_round("", None, [ended(ToolCall(f"c{number}", "search", "{}"), text)])
    return transcript


def results_in(transcript: Transcript) -> list[str]:
    """Each result by its first letter, "-" where it became a note."""
    said = [str(message.content) for message in transcript.messages() if message.role.value == "tool"]
    return ["-" if text == template.ELIDED_TOOL_RESULT else text[0] for text in said]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("abcd", 1), ("abc", 0), ("日本語", 3), ("abcd日本", 3), ("a" * 400, 100), ("é" * 4, 4)],
)
def test_tokens_are_estimated_without_a_tokenizer(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@pytest.mark.parametrize(
    ("context_size", "max_tokens", "left"),
    [(None, 100, None), (1000, 0, 1000), (1000, 100, 900), (1000, 500, 500), (1000, 8192, 500)],
)
def test_the_answer_has_its_share_of_the_window_and_never_more_than_half(
    context_size: int | None, max_tokens: int, left: int | None
) -> None:
    assert Window((), context_size, max_tokens).prompt_tokens == left


def test_a_prompt_that_fits_stays_as_it_is() -> None:
    transcript = transcript_of("a" * 4000)
    before = transcript.messages()

    assert list(Window((), 10_000).fit(transcript)) == []
    assert transcript.messages() == before


def test_without_a_context_size_only_the_providers_error_trims() -> None:
    transcript = transcript_of(*(letter * 40_000 for letter in "abcde"))
    window = Window(())

    assert list(window.fit(transcript)) == []
    assert results_in(transcript) == [*"abcde"]
    assert len(list(window.shrink(transcript))) == 1
    assert results_in(transcript) == [*"--cde"]


def test_over_the_window_the_oldest_results_become_notes_until_three_quarters_are_reached_and_stay_so() -> None:
    transcript = transcript_of(*(letter * 4_000 for letter in "abcdefghijk"))
    window = Window((), 10_000)
    assert window.weigh(transcript).tokens > 10_000

    (note,) = window.fit(transcript)

    trimmed = results_in(transcript).count("-")
    assert results_in(transcript) == [*"-" * trimmed, *"abcdefghijk"[trimmed:]]
    assert window.weigh(transcript).tokens <= 7_500 < window.weigh(transcript).tokens + 1_000
    assert str(trimmed) in note
    before = transcript.messages()
    assert list(window.fit(transcript)) == []
    assert transcript.messages() == before


def test_the_reserved_answer_counts_when_a_prompt_is_fitted() -> None:
    assert list(Window((), 10_000).fit(transcript_of("a" * 24_000))) == []
    assert len(list(Window((), 10_000, max_tokens=5_000).fit(transcript_of("a" * 24_000)))) == 1


def test_a_prompt_that_is_not_too_long_is_sent_unchanged() -> None:
    transcript = transcript_of("short", opening=[UserPromptMessage(content="x" * 100_000)])

    assert list(Window((), 1_000).fit(transcript)) == []
    assert list(Window((), 1_000).shrink(transcript)) == []


def test_over_the_line_limit_oldest_images_go_first_then_oldest_results() -> None:
    picture: list[PromptMessageContentUnionTypes] = [TextPromptMessageContent(data="see"), image(20_000), image(20_000)]
    opening = [UserPromptMessage(content=picture)]
    sizes = dict.fromkeys("ab", 20_000)

    def fitted(limit: int) -> tuple[list[str], list[str]]:
        transcript = transcript_of(*(letter * size for letter, size in sizes.items()), opening=opening)
        notes = list(Window((), longest_request=limit).fit(transcript))
        assert len(notes) == 1
        content = transcript.messages()[0].content
        assert isinstance(content, list)
        return [part.type.value for part in content], results_in(transcript)

    assert fitted(70_000) == (["text", "text", "image"], ["a", "b"])
    assert fitted(50_000) == (["text", "text", "text"], ["a", "b"])
    assert fitted(30_000) == (["text", "text", "text"], ["-", "b"])
    assert fitted(10_000) == (["text", "text", "text"], ["-", "-"])


def with_opaque_bodies(*bodies: str) -> Transcript:
    transcript = Transcript([UserPromptMessage(content="Why?")])
    for body in bodies:
        transcript.append_answer("Because.", {"sealed": body})
    return transcript


def bodies_in(transcript: Transcript) -> list[bool]:
    return [carries_opaque_body(message) for message in transcript.messages()[1:]]


def test_opaque_bodies_count_and_the_oldest_yield_before_the_run_does() -> None:
    transcript = with_opaque_bodies("a" * 40_000, "b" * 40_000, "c" * 40_000)

    (note,) = Window((), longest_request=60_000).fit(transcript)

    assert bodies_in(transcript) == [False, False, True]
    assert "2 opaque bodies" in note


def test_opaque_bodies_count_as_tokens_too() -> None:
    transcript = with_opaque_bodies("a" * 40_000, "b" * 4_000)
    assert Window(()).weigh(transcript).tokens > 11_000

    (note,) = Window((), 10_000).fit(transcript)

    assert bodies_in(transcript) == [False, True]
    assert "1 opaque bodies" in note


def test_tool_results_yield_before_opaque_bodies() -> None:
    transcript = transcript_of("r" * 40_000)
    transcript.append_answer("Because.", {"sealed": "a" * 20_000})

    list(Window((), longest_request=40_000).fit(transcript))

    assert results_in(transcript) == ["-"]
    assert carries_opaque_body(transcript.messages()[-1])


def test_a_prompt_that_cannot_fit_is_an_error_that_says_what_to_shorten() -> None:
    transcript = transcript_of("a" * 5_000, opening=[UserPromptMessage(content="x" * 20_000)])

    with pytest.raises(InvalidParameters, match="instruction, query, context"):
        list(Window((), longest_request=10_000).fit(transcript))


def test_a_request_stays_under_four_mebibytes() -> None:
    assert MAX_REQUEST_BYTES == 4 * 1024 * 1024
    assert Window(()).longest_request == MAX_REQUEST_BYTES


@st.composite
def conversations(draw: st.DrawFn) -> Transcript:
    picture = image(draw(st.integers(0, 500)))
    opening: list[PromptMessage] = [
        SystemPromptMessage(content=draw(readable_text)),
        AssistantPromptMessage(content=draw(readable_text)),
        UserPromptMessage(content=[TextPromptMessageContent(data=draw(readable_text)), picture]),
    ]
    transcript = Transcript(opening)
    for _ in range(draw(st.integers(0, 2))):
        call = ToolCall(draw(readable_text), draw(readable_text), '{"q": "\\u65e5\\n"}')
        answered = ended(call, draw(text_from_the_host))
        transcript.append_round(draw(text_from_the_host), draw(json_values), [answered] * 2)
    return transcript


def length_on_the_wire(transcript: Transcript, tools: list[PromptMessageTool]) -> int:
    """The longest line that the SDK itself writes for this request."""
    session, transport = make_session(ScriptedModel([says("ok")]), Tools({}))
    config = ModelSelection.read(model(), list[str]().append).config
    request = ModelRequest(config, transcript.messages(), tools)
    list(HostSession(session).stream_model(request, "0", lambda: 10.0, 10.0))
    return transport.longest_line


@given(conversations(), st.lists(st.tuples(readable_text, st.dictionaries(readable_text, json_values)), max_size=3))
def test_the_weight_is_never_smaller_than_the_line_that_is_written(
    transcript: Transcript, described: list[tuple[str, dict[str, Any]]]
) -> None:
    tools = [PromptMessageTool(name="t", description=text, parameters=schema) for text, schema in described]

    weight = Window(tools).weigh(transcript).size

    assert weight >= length_on_the_wire(transcript, tools)


def test_the_weight_stays_above_the_line_in_long_conversations_of_odd_characters() -> None:
    transcript = transcript_of(*['\x00\x1f"\\\u2028日本😀</' * 300] * 50)

    weight, line = Window(()).weigh(transcript).size, length_on_the_wire(transcript, [])

    assert line <= weight <= line + 4096 + 1000
