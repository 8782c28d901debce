"""A request of Dify's core as one of Chat Completions.

In: `ModelRequest` and its settled parameters. Out: the arguments of `client.chat.completions.create`, such as
compatible servers take them too. Opaque bodies are the Responses API's and are left out.
"""

from typing import Any, cast

from openai.types.chat import (
    ChatCompletionAssistantMessageParam,
    ChatCompletionContentPartParam,
    ChatCompletionFunctionToolParam,
    ChatCompletionMessageParam,
    ChatCompletionSystemMessageParam,
    ChatCompletionToolMessageParam,
    ChatCompletionUserMessageParam,
)
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming, ResponseFormat

from devhost.models.openai_api.media import address, data_url, filename
from devhost.models.openai_api.response_format import named_schema
from devhost.models.provider.catalog import limits_completion_tokens
from devhost.models.provider.failures import refused
from devhost.models.provider.turn_events import without_thoughts
from devhost.models.request import (
    AssistantMessage,
    MediaPart,
    ModelRequest,
    PromptMessage,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
)
from devhost.protocol.wire import JsonObject


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
