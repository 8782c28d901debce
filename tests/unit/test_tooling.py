"""The names that plugins may import: decisions about one round, and the parsing of a call, which fails closed."""

import json
import math
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from dify_plugin.entities.model.llm import LLMResult, LLMResultChunk, LLMResultChunkDelta, LLMUsage
from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    PromptMessage,
    SystemPromptMessage,
    UserPromptMessage,
)
from hypothesis import given
from hypothesis import strategies as st

from internal.flow import (
    build_round_prompt_messages,
    extract_blocking_tool_calls,
    extract_stream_tool_calls,
    should_emit_response_text,
)
from internal.loop import should_continue
from internal.tooling import (
    MAX_ARGUMENTS_LENGTH,
    ToolArgumentsParseResult,
    parse_tool_arguments,
    resolve_tool_instance,
    without_quote,
)
from tests.support.builders import sdk_call
from tests.support.generators import any_text, joined, json_objects, json_values

CALL = sdk_call("c1", "search")


def test_a_prompt_starts_with_system_history_user_and_changes_none_of_its_input() -> None:
    system = SystemPromptMessage(content="s")
    user = UserPromptMessage(content="u")
    history: list[PromptMessage] = [UserPromptMessage(content="h1"), AssistantPromptMessage(content="h2")]
    before = [*history]

    messages = build_round_prompt_messages(history_prompt_messages=history, system_message=system, user_message=user)
    messages.append(user)

    assert messages == [system, *before, user, user]
    assert history == before
    empty: list[PromptMessage] = []
    for nothing in (None, empty):
        assert [user] == build_round_prompt_messages(
            history_prompt_messages=nothing, system_message=None, user_message=user
        )


@pytest.mark.parametrize(
    ("has_calls", "shows_thoughts", "steps_seen"),
    [(False, True, [1, 2, 3, 4]), (False, False, [1, 2, 3, 4]), (True, True, [1, 2, 3, 4]), (True, False, [3, 4])],
)
def test_text_beside_calls_is_seen_when_thoughts_are_or_in_the_last_step(
    *, has_calls: bool, shows_thoughts: bool, steps_seen: list[int]
) -> None:
    assert steps_seen == [
        step
        for step in (1, 2, 3, 4)
        if should_emit_response_text(
            has_tool_calls=has_calls,
            iteration_step=step,
            max_iteration_steps=3,
            emit_intermediate_thoughts=shows_thoughts,
        )
    ]


def test_tool_calls_are_taken_from_a_chunk_and_from_a_result_as_a_list_of_their_own() -> None:
    message = AssistantPromptMessage(content="", tool_calls=[CALL])
    chunk = LLMResultChunk(model="m", delta=LLMResultChunkDelta(index=0, message=message))
    result = LLMResult(model="m", message=message, usage=LLMUsage.empty_usage())

    for found in (extract_stream_tool_calls(chunk), extract_blocking_tool_calls(result)):
        assert found == [CALL]
        found.clear()
    assert message.tool_calls == [CALL]


NO_LISTS = [None, SimpleNamespace(), SimpleNamespace(tool_calls=None), AssistantPromptMessage(content="")]


@pytest.mark.parametrize(
    "holder", [None, SimpleNamespace(), *(SimpleNamespace(message=each) for each in NO_LISTS)], ids=repr
)
def test_what_lacks_a_delta_message_or_list_has_no_calls(holder: Any) -> None:  # noqa: ANN401 - less than the types say
    assert extract_stream_tool_calls(SimpleNamespace(delta=holder)) == []  # type: ignore[arg-type] # as above
    assert extract_stream_tool_calls(holder) == extract_blocking_tool_calls(holder) == []


@pytest.mark.parametrize(
    ("iteration", "has_call", "continues"),
    [(0, True, True), (2, True, True), (3, True, False), (4, True, False), (0, False, False), (3, False, False)],
)
def test_a_run_continues_while_calls_and_rounds_are_left(iteration: int, *, has_call: bool, continues: bool) -> None:
    assert should_continue(iteration=iteration, maximum_iterations=3, has_tool_call=has_call) is continues


SCRAPS = ["{", "}", '"a"', ":", ",", "1", "1e999", "NaN", "-Infinity", "[", "]", '"\\ud83d"', "null", "tru", " ", "\n"]


def nested(levels: int, innermost: str = "") -> str:
    """An object with this many levels of objects in all."""
    return '{"a":' * (levels - 1) + "{" + innermost + "}" + "}" * (levels - 1)


def leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def error(arguments: object) -> str:
    result = parse_tool_arguments(arguments)

    assert not result.ok
    assert result.args == {}
    assert len(str(result.error)) < 300
    return str(result.error).removeprefix("tool arguments parse error: ")


@given(json_objects, st.sampled_from([None, 2]), st.booleans())
def test_every_json_object_is_accepted(value: dict[str, object], indent: int | None, ascii_only: bool) -> None:  # noqa: FBT001
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)

    assert parse_tool_arguments(text) == ToolArgumentsParseResult(ok=True, args=value)


@given(any_text | joined(SCRAPS) | json_values.map(json.dumps))
def test_accepted_arguments_are_a_json_object_that_can_be_written(text: str) -> None:
    result = parse_tool_arguments(text)

    if result.ok:
        assert result.error is None
        assert result.args == json.loads(text or "{}")
        assert all(math.isfinite(leaf) for leaf in leaves(result.args) if isinstance(leaf, float))
        assert json.dumps(result.args, ensure_ascii=False, allow_nan=False).encode()
    else:
        assert error(text)


LONGEST = json.dumps({"q": "x" * (MAX_ARGUMENTS_LENGTH - len('{"q": ""}'))})
REFUSED: list[tuple[object, str]] = [
    ("\ufeff{}", "at character 0"),
    ("{'a': 1}", "at character 1"),
    ("{", "at character 1"),
    ('{"a": "b', "Unterminated string starting at character 6, near"),
    ('{"a": "\n"}', "Invalid control character at character 7, near"),
    ("[]", "got an array;"),
    ("null", "got null;"),
    (None, "got NoneType"),
    ('{"a": 1,}', f"at character {8 if sys.version_info < (3, 13) else 7}"),  # 3.13 points to the comma
    ('{"a": [1, "\\ud83d"]}', "at $.a[1]"),
    ('{"a": {"b\\udc00": 1}}', "at $.a"),
    ('{"a": {"b": 1e999}}', "at $.a.b"),
    ('{"NaN": NaN}', "NaN is not a JSON number, at character 8"),
    (nested(65), "nested deeper than 64"),
    (nested(64, '"b": []'), "nested deeper than 64"),
    ('{"a":' * 190_000, "nested deeper than 64"),
    ('{"a":' + "[" * 190_000, "nested deeper than 64"),
    (LONGEST + " ", "longer than 1,000,000 characters"),
    ("NaN" * MAX_ARGUMENTS_LENGTH, "longer than 1,000,000 characters"),
    ('{"a": ' + "1" * 10_000 + "}", "a number has more than 4,300 digits"),
    (json.dumps({"k" * 100_000: "\ud83d"}), "half a surrogate pair in the text at $.kkk"),
]


@pytest.mark.parametrize(("arguments", "where"), REFUSED, ids=lambda value: repr(value)[:30])
def test_anything_else_is_refused_with_its_position_and_never_repaired(arguments: object, where: str) -> None:
    assert where in error(arguments)


def test_64_levels_and_a_million_characters_are_taken() -> None:
    assert parse_tool_arguments(nested(64, '"b": 1')).ok
    assert parse_tool_arguments(LONGEST).ok


@pytest.mark.parametrize("text", ['{"q": "x" "n": 1}', """{"token": "it's" "n": 1}"""])
def test_an_error_quotes_the_text_around_its_position(text: str) -> None:
    refusal = error(text)

    assert f"near {text!r}" in refusal
    assert "n" not in without_quote(refusal).partition("at character ")[2].partition(";")[0]
    assert without_quote(refusal).endswith("; send one JSON object")


def test_a_tool_is_found_only_by_its_exact_name() -> None:
    assert resolve_tool_instance({"search": 1}, "search") == 1
    assert resolve_tool_instance({"search": 1}, "Search") is None
    assert resolve_tool_instance(None, "search") is None


@given(st.lists(json_objects, min_size=2, max_size=4), st.sampled_from(["", " ", "\n"]))
def test_objects_in_a_row_are_told_to_be_calls_that_were_joined(objects: list[Any], between: str) -> None:
    said = error(between.join(map(json.dumps, objects)))

    assert said.endswith("; send one JSON object, and one call in a turn: several were joined, so none of them ran")
    assert "near" not in without_quote(said)


@pytest.mark.parametrize("broken", ['{"q": 1} then', '{"q": 1}}', '{"q": 1}[2]', '{"q": {'])
def test_other_broken_arguments_are_not_taken_for_joined_calls(broken: str) -> None:
    assert "joined" not in error(broken)
