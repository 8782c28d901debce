"""OpenAI's two APIs: translates Dify's requests, parses the streams, and maps the errors."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, cast

import httpx
import openai
from openai import BaseModel
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDelta
from openai.types.responses import Response, ResponseFunctionToolCall, ResponseStreamEvent

from devhost.models.backend import (
    AssistantMessage,
    Content,
    MediaPart,
    ModelCallError,
    ModelRequest,
    PromptMessage,
    TextPart,
    ToolMessage,
    UserMessage,
    tool_call,
)
from devhost.models.catalog import is_openais, reasons
from devhost.models.usage import TokenCounts
from devhost.protocol.wire import JsonObject
from devhost.text import Secrets, json_or

type Api = Literal["responses", "chat"]

# Errors from a provider, worded as Dify's openai plugin reports them.

_RAISED: tuple[tuple[type[openai.APIError], str], ...] = (
    (openai.APIConnectionError, "InvokeConnectionError"),
    (openai.InternalServerError, "InvokeServerUnavailableError"),
    (openai.RateLimitError, "InvokeRateLimitError"),
    (openai.AuthenticationError, "InvokeAuthorizationError"),
    (openai.PermissionDeniedError, "InvokeAuthorizationError"),
    (openai.APIStatusError, "InvokeBadRequestError"),
)
_IN_STREAM = {
    "rate_limit_exceeded": "InvokeRateLimitError",
    "insufficient_quota": "InvokeRateLimitError",
    "server_error": "InvokeServerUnavailableError",
    "server_is_overloaded": "InvokeServerUnavailableError",
    "overloaded_error": "InvokeServerUnavailableError",
    "429": "InvokeRateLimitError",
    **dict.fromkeys(("500", "502", "503", "504"), "InvokeServerUnavailableError"),
}
"""Error types by the code or type of an error that arrives inside a stream, after status 200."""
_HELPS = {
    "InvokeConnectionError": "; check that a server runs there, or set OPENAI_BASE_URL",
    "InvokeAuthorizationError": "; check OPENAI_API_KEY",
}
_LONGEST = 1_000
"""The maximum length of a server's own error text, in characters."""


def failure(error_type: str, message: str) -> ModelCallError:
    """Returns the error that Dify's openai plugin would report.

    The message about a refused key quotes nothing, so that no part of the key is shown.
    """
    if error_type == "InvokeAuthorizationError":
        return ModelCallError(error_type, "[models] Incorrect model credentials provided, please check and try again.")
    described = " ".join(re.findall(r"[A-Z][a-z]+", error_type.removeprefix("Invoke")))
    return ModelCallError(error_type, f"[models] {described}, {message}")


def refused(message: str) -> ModelCallError:
    """Returns the error for a bad request, such as one that the provider's API cannot express."""
    return failure("InvokeBadRequestError", message)


def _told(said: object) -> tuple[str, str]:
    """Returns the code and the message of an error, wherever the server puts them; both are empty if there is none."""
    match said:
        case str(message):
            return "", message
        case {"error": dict() | str() as inner}:
            return _told(inner)
        case {"message": str(message), **others} | {"detail": str(message), **others}:
            code = others.get("code") or others.get("status") or others.get("type") or ""
            return str(code), message
    return "", ""


_FIRST_WORDS = 200
"""How many characters are quoted from a response that is not a model's answer."""
_MARKUP = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_NO_STREAM = ("application/json", "text/html", "application/xhtml+xml", "application/xml", "text/xml")


def whole_answer(response: httpx.Response) -> JsonObject | None:
    """Returns the answer of a server that does not stream, as one JSON object; `None` for a stream.

    Raises `ModelCallError` for anything else, such as the login page of a proxy.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _NO_STREAM:
        return None
    text = response.read().decode(errors="replace")
    match json_or(text, None):
        case {"choices": [_, *_]} | {"output": list()} as answer:
            return answer
        case said:
            code, message = _told(said)
    if message:
        raise failed_in_stream(code, message)
    words = " ".join(_MARKUP.sub(" ", text).split())[:_FIRST_WORDS]
    raise refused(f'the server sent {kind} in place of a model\'s answer, "{words}"; is the address right?')


def cut_off(missing: str) -> ModelCallError:
    return failure("InvokeConnectionError", f"the stream ended without {missing}: stream cut off")


def failed_in_stream(code: str | None, message: str, kind: str | None = None) -> ModelCallError:
    known = (_IN_STREAM.get(name) for name in (code or "", kind or ""))
    error_type = next(filter(None, known), "InvokeBadRequestError")
    return failure(error_type, f"{code or kind or 'error'}: {message}")


@contextmanager
def provider_failures(key: str, url: str) -> Iterator[None]:
    """Converts every exception inside the context to a `ModelCallError` that does not contain the key.

    `url` must not contain credentials.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 - a server's stream may have any form; Dify passes on any error, too
        worded = _worded(error)
        said = " ".join(Secrets([key]).masked(worded.message).split())
        if len(said) > _LONGEST:
            said = f"{said[:_LONGEST]}…"
        where = f"(server: {url}{_HELPS.get(worded.error_type, '')})"
        raise ModelCallError(worded.error_type, f"{said} {where}") from None


def _worded(error: Exception) -> ModelCallError:
    match error:
        case ModelCallError():
            return error
        case openai.APIConnectionError() | openai.APIStatusError():
            kind = next(kind for raised, kind in _RAISED if isinstance(error, raised))
            # The client's own message gives neither the cause of a connection error nor a body that is not JSON.
            more = error.__cause__ or (error.body if isinstance(error.body, str) else "")
            return failure(kind, f"{error} - {more}" if more else str(error))
        case openai.APIError(body=str(message)):
            return failed_in_stream(None, message)
        case json.JSONDecodeError(doc=said):
            return refused(f"the server's stream has an event that is not JSON: {said[:_FIRST_WORDS]}")
        case openai.APIError():
            return failed_in_stream(error.code, error.message, error.type)
    return ModelCallError("InvokeError", f"[models] Error: {type(error).__name__}: {error}")


# The events of a provider's stream, the same for both APIs: pieces of thoughts and of text, and the end of the turn
# with its tool calls.


class ThoughtText(str):
    """A piece of the model's reasoning, as opposed to a piece of its text."""

    __slots__ = ()


@dataclass(frozen=True)
class FinishedChoice:
    reason: str
    calls: tuple[JsonObject, ...] = ()
    opaque_body: Any = None
    tokens: TokenCounts | None = None
    """The token counts; `None` if the server reported none."""


type TurnEvent = str | FinishedChoice

_BLOCK = re.compile(r"<think>\n.*?\n</think>\n*", re.DOTALL)


def with_blocks(said: Iterable[TurnEvent]) -> Iterator[TurnEvent]:
    """Yields the events with thoughts as text inside `<think>` blocks, and drops empty pieces."""
    thinking = False
    try:
        for event in said:
            if not event:
                continue
            if isinstance(event, ThoughtText) != thinking:
                thinking = not thinking
                yield "<think>\n" if thinking else "\n</think>\n"
            yield event
    except ModelCallError:
        if thinking:
            yield "\n</think>\n"
        raise


def without_thoughts(text: str) -> str:
    """Returns the text without the `<think>` blocks that `with_blocks` added, for a provider."""
    return _BLOCK.sub("", text)


# Parts of a prompt and formats of an answer that both APIs share.


def data_url(part: MediaPart) -> str:
    return f"data:{part.mime_type};base64,{part.base64_data}"


def filename(part: MediaPart) -> str:
    return part.filename or f"file.{part.format}"


def taken_format(params: JsonObject) -> tuple[str, JsonObject]:
    """Removes `response_format` and `json_schema` from the parameters and returns the format and its schema.

    `json_schema` is `{"name": …, "schema": …}` or a bare schema, as a JSON object or as JSON text.
    """
    kind = str(params.pop("response_format", "text"))
    schema = params.pop("json_schema", None)
    if kind != "json_schema":
        return kind, {}
    try:
        given = schema
        if isinstance(schema, str):
            given = json.loads(schema)
    except ValueError as error:
        raise refused(f"json_schema is not valid JSON: {error}") from error
    if not isinstance(given, dict):
        raise refused("response_format=json_schema needs json_schema, a JSON object")
    return kind, given if "schema" in given else {"name": "answer", "schema": given}


# Chat Completions.


def chat_request(request: ModelRequest, params: JsonObject) -> Any:  # noqa: ANN401 - keyword arguments of the client
    """Returns the keyword arguments of a Chat Completions request.

    `params` that have a different form in this API are translated; all others are sent unchanged. Opaque bodies belong
    to the Responses API and are omitted.
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
        if schema:
            arguments["response_format"] = {"type": kind, "json_schema": schema}
        else:
            arguments["response_format"] = {"type": kind}
    return {**arguments, "extra_body": others}


def chat_message(message: PromptMessage) -> JsonObject:
    match message:
        case UserMessage(content=tuple(parts)):
            return {"role": "user", "content": [_chat_part(part) for part in parts]}
        case AssistantMessage():
            calls = [call.model_dump() | {"type": "function"} for call in message.tool_calls]
            answer: JsonObject = {"role": "assistant", "content": without_thoughts(message.text)}
            if calls:
                return {**answer, "tool_calls": calls}
            return answer
        case ToolMessage():
            if isinstance(message.content, tuple) and any(isinstance(part, MediaPart) for part in message.content):
                raise refused("Chat Completions accepts only text as a tool's result")
            return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
        case _:
            return {"role": message.role, "content": message.text}


def _chat_part(part: TextPart | MediaPart) -> JsonObject:
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


def chat_turn(chunks: Iterable[ChatCompletionChunk]) -> Iterator[TurnEvent]:
    calls = list[JsonObject]()
    reason = None
    tokens = None
    by_index: dict[int, JsonObject] = {}
    for chunk in chunks:
        _refuse_an_error(chunk)
        if chunk.usage is not None:
            tokens = TokenCounts.read(chunk.usage.to_dict(), "prompt_tokens", "completion_tokens")
        for choice in chunk.choices or ():
            reason = choice.finish_reason or reason
            # Some servers end with a choice whose delta is null or missing.
            delta: ChoiceDelta = getattr(choice, "delta", None) or ChoiceDelta()
            extra = delta.model_extra or {}
            # DeepSeek, LM Studio and older vLLM use the first name, Ollama and vLLM the second.
            thought = extra.get("reasoning_content") or extra.get("reasoning")
            yield ThoughtText(thought if isinstance(thought, str) else "")
            yield (delta.content or "") + (delta.refusal or "")
            for fragment in delta.tool_calls or ():
                call = by_index.get(fragment.index)
                # Some servers give all calls the same index.
                if call is None or fragment.id not in {None, "", call["id"]}:
                    call = by_index[fragment.index] = tool_call(fragment.id or "", "", "")
                    calls.append(call)
                if fragment.function is not None:
                    called = call["function"]
                    called["name"] = called["name"] or fragment.function.name or ""
                    called["arguments"] += fragment.function.arguments or ""
    if reason is None:
        raise cut_off("a finish_reason")
    yield FinishedChoice(reason, tuple(calls), tokens=tokens)


def whole_chat(answer: JsonObject) -> Iterator[TurnEvent]:
    """Yields the events of an answer that was not streamed, by reading it as a stream of one chunk."""
    choices = []
    for choice in answer["choices"]:
        message = choice.get("message") or {}
        calls = [{**call, "index": number} for number, call in enumerate(message.get("tool_calls") or ())]
        reason = choice.get("finish_reason") or "stop"
        choices.append({**choice, "delta": {**message, "tool_calls": calls}, "finish_reason": reason})
    return chat_turn([ChatCompletionChunk.construct(**{**answer, "choices": choices})])


def _refuse_an_error(event: BaseModel) -> None:
    """Raises `ModelCallError` for an event that is an error.

    Some servers send errors as events that have none of the usual fields.
    """
    if getattr(event, "type", None) in {None, "error"} and not getattr(event, "choices", None):
        code, message = _told(event.model_extra)
        if message:
            raise failed_in_stream(code, message)


# The Responses API.

REASONING = "reasoning_"
"""The prefix of parameters that become parts of `reasoning`, such as effort and summary."""


def responses_request(request: ModelRequest, params: JsonObject) -> Any:  # noqa: ANN401 - arguments of the client
    """Returns the keyword arguments of a Responses API request.

    `params` with another form in this API are translated; all others are sent unchanged. No tool is strict, because
    Dify's schemas have optional parameters.
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
    text = {}
    if "verbosity" in others:
        text = {"verbosity": others.pop("verbosity")}
    kind, schema = taken_format(others)
    if kind != "text":
        text["format"] = {"type": kind, **schema}
    return {**arguments, **({"text": text} if text else {}), "extra_body": others}


def input_items(message: PromptMessage) -> Iterator[JsonObject]:
    """Yields the input items for a message.

    An assistant message that carries the items of its response is sent back as these items, unchanged.
    """
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
    if isinstance(content, tuple):
        return [_input_part(part) for part in content]
    return content or ""


def _input_part(part: TextPart | MediaPart) -> JsonObject:
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


_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}
"""Finish reasons by `incomplete_details.reason`. Any other reason becomes "incomplete"."""


def responses_turn(events: Iterable[ResponseStreamEvent]) -> Iterator[TurnEvent]:
    for event in events:
        _refuse_an_error(event)
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                yield event.delta
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield ThoughtText(event.delta)
            case "response.reasoning_summary_part.added" if event.summary_index > 0:
                yield ThoughtText("\n\n")
            case "response.completed" | "response.incomplete":
                yield _finished(event.response)
                return
            case "response.failed":
                error = event.response.error
                raise failed_in_stream(error.code if error else None, error.message if error else "no reason given")
            case "error":
                raise failed_in_stream(event.code, event.message)
    raise cut_off("response.completed")


def whole_response(answer: JsonObject) -> Iterator[TurnEvent]:
    """Yields the events of a response that was not streamed."""
    response = Response.construct(**answer)
    if response.error is not None:
        raise failed_in_stream(response.error.code, response.error.message)
    yield response.output_text
    yield _finished(response)


def _finished(response: Response) -> FinishedChoice:
    calls = tuple(
        tool_call(item.call_id, item.name, item.arguments)
        for item in response.output
        if isinstance(item, ResponseFunctionToolCall)
    )
    reason = "stop"
    if calls:
        reason = "tool_calls"
    if response.status == "incomplete":
        # Dify's plugin drops the calls of a truncated response but passes on its items.
        details = response.incomplete_details
        calls = ()
        reason = _REASONS.get(details.reason or "" if details else "", "incomplete")
    usage = response.usage
    return FinishedChoice(
        reason=reason,
        calls=calls,
        # Dify's openai plugin uses the same key.
        opaque_body={"responses_output": [item.to_dict(mode="json") for item in response.output]},
        tokens=None if usage is None else TokenCounts.read(usage.to_dict(), "input_tokens", "output_tokens"),
    )
