"""Small decisions about one round."""

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

from internal.flow import (
    build_round_prompt_messages,
    extract_blocking_tool_calls,
    extract_stream_tool_calls,
    should_emit_response_text,
)
from internal.loop import should_continue
from tests.support.builders import sdk_call

CALL = sdk_call("c1", "search")


def test_a_prompt_starts_with_system_history_user_and_changes_none_of_its_input() -> None:
    system, user = SystemPromptMessage(content="s"), UserPromptMessage(content="u")
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
