"""A request of Dify's core as one of the Responses API.

In: `ModelRequest` and its settled parameters. Out: the arguments of `client.responses.create`. An assistant message
that carries the items of its response goes back as these items, verbatim; its content and calls are not looked at.
"""

from collections.abc import Iterator
from typing import Any, cast

from openai.types.responses import (
    EasyInputMessageParam,
    FunctionToolParam,
    ResponseFunctionToolCallParam,
    ResponseInputFileParam,
    ResponseInputImageParam,
    ResponseInputItemParam,
    ResponseInputTextParam,
    ResponseTextConfigParam,
)
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from openai.types.responses.response_input_item_param import FunctionCallOutput
from openai.types.shared_params import Reasoning

from devhost.models.openai_api.media import address, data_url, filename
from devhost.models.openai_api.response_format import named_schema
from devhost.models.provider.catalog import reasons
from devhost.models.provider.failures import refused
from devhost.models.provider.turn_events import without_thoughts
from devhost.models.request import (
    AssistantMessage,
    Content,
    MediaPart,
    ModelRequest,
    PromptMessage,
    TextPart,
    ToolMessage,
)
from devhost.protocol.wire import JsonObject

OUTPUT_ITEMS = "responses_output"
"""The key of an opaque body, as Dify's openai plugin names it."""
type ContentPart = ResponseInputTextParam | ResponseInputImageParam | ResponseInputFileParam


def responses_request(request: ModelRequest, params: JsonObject) -> ResponseCreateParamsStreaming:
    if request.stop:
        raise refused("the Responses API has no stop words")
    arguments: ResponseCreateParamsStreaming = {
        "model": request.model,
        "input": [item for message in request.prompt_messages for item in input_items(message)],
        "store": False,
        "stream": True,
    }
    if reasons(request.model):
        arguments["include"] = ["reasoning.encrypted_content"]
    if request.tools:
        arguments["tools"] = function_tools(request)
        arguments["tool_choice"] = "auto"
    _set_parameters(arguments, params)
    return arguments


def function_tools(request: ModelRequest) -> list[FunctionToolParam]:
    """Not strict: Dify's schemas leave parameters optional, which strict ones may not."""
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "strict": False,
        }
        for tool in request.tools or ()
    ]


def input_items(message: PromptMessage) -> Iterator[ResponseInputItemParam]:
    match message:
        case AssistantMessage():
            items = output_items(message.opaque_body)
            yield from _assistant_items(message) if items is None else items
        case ToolMessage():
            output = FunctionCallOutput(
                type="function_call_output", call_id=message.tool_call_id, output=_parts(message.content)
            )
            yield output
        case _:
            yield EasyInputMessageParam(type="message", role=message.role, content=_parts(message.content))


def output_items(opaque_body: object) -> list[ResponseInputItemParam] | None:
    """The items of an earlier response; None when the message carries none."""
    items = opaque_body.get(OUTPUT_ITEMS) if isinstance(opaque_body, dict) else None
    return cast("list[ResponseInputItemParam]", items) if isinstance(items, list) else None


def _assistant_items(message: AssistantMessage) -> Iterator[ResponseInputItemParam]:
    text = without_thoughts(message.text)
    if text:
        yield EasyInputMessageParam(type="message", role="assistant", content=text)
    for call in message.tool_calls:
        yield ResponseFunctionToolCallParam(
            type="function_call", call_id=call.id, name=call.function.name, arguments=call.function.arguments
        )


def _parts(content: Content) -> Any:  # noqa: ANN401 - the SDK has a list type per message, of the same parts
    if isinstance(content, tuple):
        return [_part(part) for part in content]
    return content or ""


def _part(part: TextPart | MediaPart) -> ContentPart:
    match part:
        case TextPart():
            return {"type": "input_text", "text": part.data}
        case MediaPart(type="image"):
            return {"type": "input_image", "image_url": address(part), "detail": part.detail or "auto"}
        case MediaPart(type="document") if part.url:
            return {"type": "input_file", "file_url": part.url}
        case MediaPart(type="document"):
            return {"type": "input_file", "filename": filename(part), "file_data": data_url(part)}
    raise refused(f"the Responses API takes no {part.type} in a prompt")


def _set_parameters(arguments: ResponseCreateParamsStreaming, params: JsonObject) -> None:
    if "max_tokens" in params:
        arguments["max_output_tokens"] = params["max_tokens"]
    for name in ("temperature", "top_p", "service_tier"):
        if name in params:
            arguments[name] = params[name]
    reasoning = Reasoning()
    for part in ("effort", "summary", "mode", "context"):
        if f"reasoning_{part}" in params:
            reasoning[part] = params[f"reasoning_{part}"]
    if reasoning:
        arguments["reasoning"] = reasoning
    text = _text_config(params)
    if text:
        arguments["text"] = text


def _text_config(params: JsonObject) -> ResponseTextConfigParam:
    text = ResponseTextConfigParam()
    if "verbosity" in params:
        text["verbosity"] = params["verbosity"]
    match params.get("response_format"):
        case "json_schema":
            text["format"] = cast("Any", {"type": "json_schema", **named_schema(params)})
        case "json_object":
            text["format"] = {"type": "json_object"}
    return text
