"""Chat Completions: a request of Dify's core as one of this API, and its stream as turn events."""

from collections.abc import Iterable, Iterator
from typing import Any

from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDelta, ChoiceDeltaToolCall

from devhost.models.backend import (
    AssistantMessage,
    MediaPart,
    ModelRequest,
    PromptMessage,
    TextPart,
    ToolMessage,
    UserMessage,
    tool_call,
)
from devhost.models.catalog import limits_completion_tokens
from devhost.models.openai_api.provider import (
    Finished,
    ThoughtText,
    TurnEvent,
    answer_format,
    cut_off,
    data_url,
    filename,
    refused,
    text_of,
    without_thoughts,
)
from devhost.models.usage import TokenCounts
from devhost.protocol.wire import JsonObject

SAME_NAME = (
    *("temperature", "top_p", "presence_penalty", "frequency_penalty", "seed"),
    *("reasoning_effort", "verbosity", "service_tier"),
)
"""Parameters that the API calls as Dify does."""


def chat_request(request: ModelRequest, params: JsonObject) -> Any:  # noqa: ANN401 - keyword arguments of the client
    """A request of Dify's core. Opaque bodies are the Responses API's and are left out."""
    arguments: JsonObject = {
        "model": request.model,
        "messages": [chat_message(message) for message in request.prompt_messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        arguments["tools"] = [{"type": "function", "function": tool.model_dump()} for tool in request.tools]
    if request.stop:
        arguments["stop"] = list(request.stop)
    if "max_tokens" in params:
        name = "max_completion_tokens" if limits_completion_tokens(request.model) else "max_tokens"
        arguments[name] = params["max_tokens"]
    if (format_ := answer_format(params, lambda schema: {"json_schema": schema})) is not None:
        arguments["response_format"] = format_
    return arguments | {name: params[name] for name in SAME_NAME if name in params}


def chat_message(message: PromptMessage) -> JsonObject:
    match message:
        case UserMessage(content=tuple(parts)):
            return {"role": "user", "content": [_part(part) for part in parts]}
        case AssistantMessage():
            calls = [call.model_dump() | {"type": "function"} for call in message.tool_calls]
            answer: JsonObject = {"role": "assistant", "content": without_thoughts(message.text)}
            return {**answer, "tool_calls": calls} if calls else answer
        case ToolMessage():
            if isinstance(message.content, tuple) and any(isinstance(part, MediaPart) for part in message.content):
                raise refused("Chat Completions takes text alone as a tool's result")
            return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
        case _:
            return {"role": message.role, "content": message.text}


def _part(part: TextPart | MediaPart) -> JsonObject:
    match part:
        case TextPart():
            return {"type": "text", "text": part.data}
        case MediaPart(type="image"):
            return {
                "type": "image_url",
                "image_url": {"url": part.url or data_url(part), "detail": part.detail or "auto"},
            }
        case MediaPart(type="document") if part.base64_data:
            return {"type": "file", "file": {"filename": filename(part), "file_data": data_url(part)}}
        case MediaPart(type="audio") if part.base64_data:
            return {"type": "input_audio", "input_audio": {"data": part.base64_data, "format": part.format}}
    raise refused(f"Chat Completions takes no {part.type} {'by its URL' if part.url else 'in a prompt'}")


# The stream of a chat completion, as turn events.

_REASONING = ("reasoning_content", "reasoning")
"""Two names of the same field: the first in DeepSeek, LM Studio and older vLLM, the second in Ollama and vLLM."""


def chat_turn(chunks: Iterable[ChatCompletionChunk]) -> Iterator[TurnEvent]:
    text = ThoughtText()
    fragments = _Fragments()
    reason, tokens = None, None
    for chunk in chunks:
        if chunk.usage is not None:
            tokens = TokenCounts.read(chunk.usage.to_dict(), "prompt_tokens", "completion_tokens")
        for choice in chunk.choices or ():
            reason = text_of(choice.finish_reason) or reason
            # Some servers end with a choice whose delta is null, or has none.
            delta: ChoiceDelta = getattr(choice, "delta", None) or ChoiceDelta()
            yield text.thought(_reasoning(delta))
            yield text.words(_words(delta.content) + _words(delta.refusal))
            if delta.tool_calls:
                yield text.end()
                yield tuple(fragments.passed_on(call) for call in delta.tool_calls)
    yield text.end()
    if reason is None:
        raise cut_off("a finish_reason")
    yield Finished(reason, tokens=tokens)


def _reasoning(delta: ChoiceDelta) -> str:
    extra = delta.model_extra or {}
    return next((value for name in _REASONING if isinstance(value := extra.get(name), str)), "")


def _words(content: object) -> str:
    """Some servers stream a list of parts, of which those of type text are the answer."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part["type"] == "text")
    return text_of(content)


class _Fragments:
    """Dify's fragments have no index: one without an id continues the last call, so a jump needs the id again."""

    def __init__(self) -> None:
        self._ids: dict[int, str] = {}
        self._last: int | None = None

    def passed_on(self, fragment: ChoiceDeltaToolCall) -> JsonObject:
        index = fragment.index
        if fragment.id:
            self._ids[index] = fragment.id
        call_id = text_of(fragment.id)
        if not call_id and index != self._last:
            call_id = self._ids.get(index, "")
        self._last = index
        function = fragment.function
        name, arguments = (function.name, function.arguments) if function else ("", "")
        return tool_call(call_id, text_of(name), text_of(arguments))
