"""The engine's prompt messages as a `ModelRequest`, and a model's chunks as the engine's."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from graphon.model_runtime.entities.llm_entities import LLMResult, LLMResultChunk, LLMResultChunkDelta, LLMUsage
from graphon.model_runtime.entities.message_entities import AssistantPromptMessage, PromptMessage, PromptMessageTool
from graphon.model_runtime.model_providers.base.large_language_model import merge_tool_call_deltas

from devhost.models.request import ModelRequest
from devhost.protocol.wire import JsonObject


def model_request(  # noqa: PLR0913 - what the engine passes to a model
    model: Mapping[str, str],
    messages: Sequence[PromptMessage],
    parameters: Mapping[str, object],
    tools: Sequence[PromptMessageTool] | None,
    stop: Sequence[str] | None,
    *,
    stream: bool,
) -> ModelRequest:
    """`model`: provider, name and mode, under `ModelRequest`'s names."""
    return ModelRequest.model_validate(
        {
            **model,
            "completion_params": dict(parameters),
            "prompt_messages": tuple(message.model_dump(mode="json") for message in messages),
            "tools": tuple(tool.model_dump(mode="json") for tool in tools) if tools else None,
            "stop": tuple(stop) if stop else None,
            "stream": stream,
        }
    )


def engine_chunks(chunks: Iterable[JsonObject]) -> Iterator[LLMResultChunk]:
    """From chunks as `devhost.models.backend.chunk` makes them."""
    for said in chunks:
        delta, usage = said["delta"], said["delta"]["usage"]
        yield LLMResultChunk(
            model=said["model"],
            delta=LLMResultChunkDelta(
                index=delta["index"],
                message=AssistantPromptMessage.model_validate(delta["message"]),
                usage=None if usage is None else LLMUsage.from_metadata(usage),
                finish_reason=delta["finish_reason"],
            ),
        )


def collected(model: str, chunks: Iterable[LLMResultChunk]) -> LLMResult:
    """All chunks of one answer as the result of a call that does not stream."""
    text, usage = "", LLMUsage.empty_usage()
    calls: list[AssistantPromptMessage.ToolCall] = []
    for each in chunks:
        text += each.delta.message.get_text_content()
        merge_tool_call_deltas(each.delta.message.tool_calls, calls)
        usage = each.delta.usage or usage
    return LLMResult(model=model, message=AssistantPromptMessage(content=text, tool_calls=calls), usage=usage)
