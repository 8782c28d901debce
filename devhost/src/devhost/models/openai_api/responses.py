"""The Responses API: a request of Dify's core as one of it, and its stream as turn events."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from openai.types.responses import (
    EasyInputMessageParam,
    FunctionToolParam,
    Response,
    ResponseFunctionToolCall,
    ResponseFunctionToolCallParam,
    ResponseInputFileParam,
    ResponseInputImageParam,
    ResponseInputItemParam,
    ResponseInputTextParam,
    ResponseStreamEvent,
    ResponseTextConfigParam,
)
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from openai.types.responses.response_input_item_param import FunctionCallOutput
from openai.types.shared_params import Reasoning

from devhost.models.backend import (
    AssistantMessage,
    Content,
    MediaPart,
    ModelRequest,
    PromptMessage,
    TextPart,
    ToolMessage,
    tool_call,
)
from devhost.models.catalog import reasons
from devhost.models.openai_api.formats import address, data_url, filename, named_schema
from devhost.models.openai_api.provider import (
    Finished,
    Said,
    ThoughtText,
    TokenCounts,
    TurnEvent,
    cut_off,
    failed_in_stream,
    refused,
    text_of,
    without_thoughts,
)
from devhost.protocol.wire import JsonObject

# A request of Dify's core as one of the Responses API.
#
# An assistant message that carries the items of its response goes back as these items, verbatim; its content and
# calls are not looked at.

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


# The stream of a response, as turn events.

_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}
"""Finish reasons by `incomplete_details.reason`; any other is "incomplete"."""


def responses_turn(events: Iterable[ResponseStreamEvent]) -> Iterator[TurnEvent]:
    text = ThoughtText()
    for event in events:
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                yield Said(text.words(event.delta))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield Said(text.thought(event.delta))
            case "response.reasoning_summary_part.added" if event.summary_index > 0:
                yield Said(text.thought("\n\n"))
            case "response.completed" | "response.incomplete":
                yield Said(text.end())
                yield _finished(event.response)
                return
            case "response.failed":
                error = event.response.error
                raise failed_in_stream(error.code if error else None, error.message if error else "no reason given")
            case "error":
                raise failed_in_stream(event.code, event.message)
    raise cut_off("response.completed")


def _finished(response: Response) -> Finished:
    calls = tuple(
        tool_call(text_of(item.call_id), text_of(item.name), text_of(item.arguments))
        for item in response.output
        if isinstance(item, ResponseFunctionToolCall)
    )
    reason = "tool_calls" if calls else "stop"
    if response.status == "incomplete":
        # Dify's plugin passes no calls of a response that was cut on, but its items all the same.
        details = response.incomplete_details
        calls, reason = (), _REASONS.get(details.reason or "" if details else "", "incomplete")
    usage = response.usage
    return Finished(
        reason=reason,
        calls=calls,
        opaque_body={OUTPUT_ITEMS: [item.to_dict(mode="json") for item in response.output]},
        tokens=None if usage is None else TokenCounts.read(usage.to_dict(), "input_tokens", "output_tokens"),
    )
