"""Chat Completions: a request of Dify's core as one of this API, and its stream as turn events."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from openai.types.chat import (
    ChatCompletionAssistantMessageParam,
    ChatCompletionChunk,
    ChatCompletionContentPartParam,
    ChatCompletionFunctionToolParam,
    ChatCompletionMessageParam,
    ChatCompletionSystemMessageParam,
    ChatCompletionToolMessageParam,
    ChatCompletionUserMessageParam,
)
from openai.types.chat.chat_completion_chunk import ChoiceDelta, ChoiceDeltaToolCall
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming, ResponseFormat

from devhost.models.backend import (
    AssistantMessage,
    MediaPart,
    ModelRequest,
    PromptMessage,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
    tool_call,
)
from devhost.models.catalog import limits_completion_tokens
from devhost.models.openai_api.formats import address, data_url, filename, named_schema
from devhost.models.openai_api.provider import (
    Called,
    Finished,
    Said,
    ThoughtText,
    TokenCounts,
    TurnEvent,
    cut_off,
    refused,
    text_of,
    without_thoughts,
)
from devhost.protocol.wire import JsonObject

# A request of Dify's core as one of Chat Completions.
#
# Opaque bodies are the Responses API's and are left out.


def chat_request(request: ModelRequest, params: JsonObject) -> CompletionCreateParamsStreaming:
    arguments: CompletionCreateParamsStreaming = {
        "model": request.model,
        "messages": [chat_message(message) for message in request.prompt_messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        arguments["tools"] = function_tools(request)
    if request.stop:
        arguments["stop"] = list(request.stop)
    _set_parameters(arguments, params)
    return arguments


def function_tools(request: ModelRequest) -> list[ChatCompletionFunctionToolParam]:
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in request.tools or ()
    ]


def chat_message(message: PromptMessage) -> ChatCompletionMessageParam:
    match message:
        case SystemMessage():
            return ChatCompletionSystemMessageParam(role="system", content=message.text)
        case UserMessage():
            content = message.content
            parts = [_part(part) for part in content] if isinstance(content, tuple) else content or ""
            return ChatCompletionUserMessageParam(role="user", content=parts)
        case AssistantMessage():
            return _assistant_message(message)
        case ToolMessage():
            if isinstance(message.content, tuple) and any(isinstance(part, MediaPart) for part in message.content):
                raise refused("Chat Completions takes text alone as a tool's result")
            return ChatCompletionToolMessageParam(role="tool", tool_call_id=message.tool_call_id, content=message.text)


def _assistant_message(message: AssistantMessage) -> ChatCompletionAssistantMessageParam:
    answer = ChatCompletionAssistantMessageParam(role="assistant", content=without_thoughts(message.text))
    if message.tool_calls:
        answer["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in message.tool_calls
        ]
    return answer


def _part(part: TextPart | MediaPart) -> ChatCompletionContentPartParam:
    match part:
        case TextPart():
            return {"type": "text", "text": part.data}
        case MediaPart(type="image"):
            return {"type": "image_url", "image_url": {"url": address(part), "detail": part.detail or "auto"}}
        case MediaPart(type="document") if part.base64_data:
            return {"type": "file", "file": {"filename": filename(part), "file_data": data_url(part)}}
        case MediaPart(type="audio") if part.base64_data:
            sound: Any = {"data": part.base64_data, "format": part.format}
            return {"type": "input_audio", "input_audio": sound}
    raise refused(f"Chat Completions takes no {part.type} {'by its URL' if part.url else 'in a prompt'}")


def _set_parameters(arguments: CompletionCreateParamsStreaming, params: JsonObject) -> None:
    if "max_tokens" in params and limits_completion_tokens(arguments["model"]):
        arguments["max_completion_tokens"] = params["max_tokens"]
    elif "max_tokens" in params:
        arguments["max_tokens"] = params["max_tokens"]
    for name in ("temperature", "top_p", "presence_penalty", "frequency_penalty", "seed"):
        if name in params:
            arguments[name] = params[name]
    for setting in ("reasoning_effort", "verbosity", "service_tier"):
        if setting in params:
            arguments[setting] = params[setting]
    match params.get("response_format"):
        case "json_schema":
            arguments["response_format"] = cast(
                "ResponseFormat", {"type": "json_schema", "json_schema": named_schema(params)}
            )
        case "json_object":
            arguments["response_format"] = {"type": "json_object"}


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
            yield Said(text.thought(_reasoning(delta)))
            yield Said(text.words(_words(delta.content) + _words(delta.refusal)))
            if delta.tool_calls:
                yield Said(text.end())
                yield Called(tuple(fragments.passed_on(call) for call in delta.tool_calls))
    yield Said(text.end())
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
