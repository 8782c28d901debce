"""Small functions for the SDK's messages of one round. They do not change their input."""

from collections.abc import Iterable, Sequence

from dify_plugin.entities.model.llm import LLMResult, LLMResultChunk
from dify_plugin.entities.model.message import AssistantPromptMessage, PromptMessage

type SdkToolCall = AssistantPromptMessage.ToolCall


def build_round_prompt_messages(
    *,
    history_prompt_messages: Iterable[PromptMessage] | None,
    system_message: PromptMessage | None,
    user_message: PromptMessage | None,
) -> list[PromptMessage]:
    """Return the messages at the start of every round's prompt: system, history, user."""
    messages = (system_message, *(history_prompt_messages or ()), user_message)
    return [message for message in messages if message is not None]


def should_emit_response_text(
    *, has_tool_calls: bool, iteration_step: int, max_iteration_steps: int, emit_intermediate_thoughts: bool = True
) -> bool:
    """Return whether the user may see the text of a turn.

    ``iteration_step`` counts model calls from 1. The closing call is included, so ``max_iteration_steps`` is
    ``maximum_iterations`` + 1. Text with tool calls is only a remark. The user sees it if thoughts are shown, or in the
    last step, because no other text follows.
    """
    return not has_tool_calls or emit_intermediate_thoughts or iteration_step >= max_iteration_steps


def extract_stream_tool_calls(chunk: LLMResultChunk | None) -> list[SdkToolCall]:
    """Return the tool-call entries of one chunk, complete or in fragments; [] without a delta, message or list."""
    return _tool_calls(getattr(chunk, "delta", None))


def extract_blocking_tool_calls(result: LLMResult | None) -> list[SdkToolCall]:
    """Return the tool calls of a result that was not streamed; [] without a message or list."""
    return _tool_calls(result)


def _tool_calls(holder: object) -> list[SdkToolCall]:
    calls: Sequence[SdkToolCall] | None = getattr(getattr(holder, "message", None), "tool_calls", None)
    return list(calls or ())
