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
from devhost.models.catalog import is_openais
from devhost.models.openai_api.provider import (
    Finished,
    ThoughtText,
    TurnEvent,
    cut_off,
    data_url,
    filename,
    refused,
    taken_format,
    without_thoughts,
)
from devhost.models.usage import TokenCounts
from devhost.protocol.wire import JsonObject


def chat_request(request: ModelRequest, params: JsonObject) -> Any:  # noqa: ANN401 - keyword arguments of the client
    """`params` that have another form here are translated, all others are sent as they are.

    Opaque bodies are the Responses API's and are left out.
    """
    others = dict(params)
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
    if is_openais(request.model) and "max_tokens" in others:
        arguments["max_completion_tokens"] = others.pop("max_tokens")
    kind, schema = taken_format(others)
    if kind != "text":
        arguments["response_format"] = {"type": kind, "json_schema": schema} if schema else {"type": kind}
    return {**arguments, "extra_body": others}


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
            image = {"url": part.url or data_url(part), "detail": part.detail or "auto"}
            return {"type": "image_url", "image_url": image}
        case MediaPart(type="document") if part.base64_data:
            return {"type": "file", "file": {"filename": filename(part), "file_data": data_url(part)}}
        case MediaPart(type="audio") if part.base64_data:
            return {"type": "input_audio", "input_audio": {"data": part.base64_data, "format": part.format}}
    raise refused(f"Chat Completions takes no {part.type} {'by its URL' if part.url else 'in a prompt'}")


# The stream of a chat completion, as turn events.

_REASONING = ("reasoning_content", "reasoning")
"""Two names of the same field: the first in DeepSeek, LM Studio and older vLLM, the second in Ollama and vLLM."""


def chat_turn(chunks: Iterable[ChatCompletionChunk]) -> Iterator[TurnEvent]:
    text, calls = ThoughtText(), list[JsonObject]()
    reason, tokens = None, None
    by_index: dict[int, JsonObject] = {}
    for chunk in chunks:
        if chunk.usage is not None:
            tokens = TokenCounts.read(chunk.usage.to_dict(), "prompt_tokens", "completion_tokens")
        for choice in chunk.choices or ():
            reason = choice.finish_reason or reason
            # Some servers end with a choice whose delta is null, or has none.
            delta: ChoiceDelta = getattr(choice, "delta", None) or ChoiceDelta()
            extra = delta.model_extra or {}
            yield text.thought(next((said for name in _REASONING if (said := extra.get(name))), ""))
            yield text.words((delta.content or "") + (delta.refusal or ""))
            for fragment in delta.tool_calls or ():
                call = by_index.get(fragment.index)
                # Some servers give all calls one index.
                if call is None or fragment.id not in {None, "", call["id"]}:
                    call = by_index[fragment.index] = tool_call(fragment.id or "", "", "")
                    calls.append(call)
                _add(call["function"], fragment)
    yield text.end()
    if reason is None:
        raise cut_off("a finish_reason")
    yield Finished(reason, tuple(calls), tokens=tokens)


def _add(function: JsonObject, fragment: ChoiceDeltaToolCall) -> None:
    if fragment.function is not None:
        function["name"] = function["name"] or fragment.function.name or ""
        function["arguments"] += fragment.function.arguments or ""
