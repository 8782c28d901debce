"""The Responses API: a request of Dify's core as one of it, and its stream as turn events."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from openai.types.responses import Response, ResponseFunctionToolCall, ResponseStreamEvent

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
from devhost.models.openai_api.provider import (
    Finished,
    ThoughtText,
    TurnEvent,
    cut_off,
    data_url,
    failed_in_stream,
    filename,
    refused,
    taken_format,
    without_thoughts,
)
from devhost.models.usage import TokenCounts
from devhost.protocol.wire import JsonObject

OUTPUT_ITEMS = "responses_output"
"""The key of an opaque body, as Dify's openai plugin names it."""
REASONING = "reasoning_"
"""Begins the names of parameters that are parts of `reasoning` here, such as effort and summary."""


def responses_request(request: ModelRequest, params: JsonObject) -> Any:  # noqa: ANN401 - arguments of the client
    """`params` that have another form here are translated, all others are sent as they are.

    No tool is strict: Dify's schemas leave parameters optional.
    """
    if request.stop:
        raise refused("the Responses API has no stop words")
    others = dict(params)
    arguments: JsonObject = {
        "model": request.model,
        "input": [item for message in request.prompt_messages for item in input_items(message)],
        "store": False,
        "stream": True,
    }
    if reasons(request.model):
        arguments["include"] = ["reasoning.encrypted_content"]
    if request.tools:
        arguments["tools"] = [{"type": "function", **tool.model_dump(), "strict": False} for tool in request.tools]
        arguments["tool_choice"] = "auto"
    if "max_tokens" in others:
        arguments["max_output_tokens"] = others.pop("max_tokens")
    if names := [name for name in others if name.startswith(REASONING)]:
        arguments["reasoning"] = {name.removeprefix(REASONING): others.pop(name) for name in names}
    text = {"verbosity": others.pop("verbosity")} if "verbosity" in others else {}
    kind, schema = taken_format(others)
    if kind != "text":
        text["format"] = {"type": kind, **schema}
    return {**arguments, **({"text": text} if text else {}), "extra_body": others}


def input_items(message: PromptMessage) -> Iterator[JsonObject]:
    """An assistant message that carries the items of its response goes back as these items, verbatim."""
    match message:
        case AssistantMessage(opaque_body={"responses_output": list(items)}):
            yield from cast("list[JsonObject]", items)
        case AssistantMessage():
            if text := without_thoughts(message.text):
                yield {"type": "message", "role": "assistant", "content": text}
            for call in message.tool_calls:
                yield {"type": "function_call", "call_id": call.id, **call.function.model_dump()}
        case ToolMessage():
            output = _parts(message.content)
            yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": output}
        case _:
            yield {"type": "message", "role": message.role, "content": _parts(message.content)}


def _parts(content: Content) -> str | list[JsonObject]:
    return [_part(part) for part in content] if isinstance(content, tuple) else content or ""


def _part(part: TextPart | MediaPart) -> JsonObject:
    match part:
        case TextPart():
            return {"type": "input_text", "text": part.data}
        case MediaPart(type="image"):
            return {"type": "input_image", "image_url": part.url or data_url(part), "detail": part.detail or "auto"}
        case MediaPart(type="document") if part.url:
            return {"type": "input_file", "file_url": part.url}
        case MediaPart(type="document"):
            return {"type": "input_file", "filename": filename(part), "file_data": data_url(part)}
    raise refused(f"the Responses API takes no {part.type} in a prompt")


# The stream of a response, as turn events.

_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}
"""Finish reasons by `incomplete_details.reason`; any other is "incomplete"."""


def responses_turn(events: Iterable[ResponseStreamEvent]) -> Iterator[TurnEvent]:
    text = ThoughtText()
    for event in events:
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                yield text.words(event.delta)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield text.thought(event.delta)
            case "response.reasoning_summary_part.added" if event.summary_index > 0:
                yield text.thought("\n\n")
            case "response.completed" | "response.incomplete":
                yield text.end()
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
        tool_call(item.call_id, item.name, item.arguments)
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
