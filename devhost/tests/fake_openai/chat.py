"""Chat Completions: the shape of a request, what is refused of a well-formed one, and a turn as the chunks of a stream.

The shape goes as far as devhost has any use for it; nothing else gets in.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Annotated, Any, Literal
from uuid import uuid4

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr

from fake_openai.refusals import Profile, Refusal, check_arguments, check_name, check_tool, profile, unsupported
from fake_openai.responses import PlainFormat, Strict
from fake_openai.turns import Call, Tokens, Turn

type Number = StrictFloat | StrictInt


class TextPart(Strict):
    type: Literal["text"]
    text: StrictStr


class ImageUrl(Strict):
    url: Annotated[StrictStr, Field(pattern=r"^(https?://|data:image/[a-z+.-]+;base64,)")]
    detail: Literal["low", "high", "auto"] = "auto"


class ImagePart(Strict):
    type: Literal["image_url"]
    image_url: ImageUrl


class FileData(Strict):
    filename: StrictStr
    file_data: Annotated[StrictStr, Field(pattern=r"^data:[^;]+;base64,")]


class FilePart(Strict):
    type: Literal["file"]
    file: FileData


class Sound(Strict):
    data: StrictStr
    format: Literal["wav", "mp3"]


class AudioPart(Strict):
    type: Literal["input_audio"]
    input_audio: Sound


type UserPart = Annotated[TextPart | ImagePart | FilePart | AudioPart, Field(discriminator="type")]


class CalledFunction(Strict):
    name: StrictStr
    arguments: StrictStr


class ToolCall(Strict):
    id: Annotated[StrictStr, Field(min_length=1)]
    type: Literal["function"]
    function: CalledFunction


class SystemMessage(Strict):
    role: Literal["system", "developer"]
    content: StrictStr | list[TextPart]


class UserMessage(Strict):
    role: Literal["user"]
    content: StrictStr | list[UserPart]


class AssistantMessage(Strict):
    role: Literal["assistant"]
    content: StrictStr | list[TextPart] | None = None
    tool_calls: Annotated[list[ToolCall], Field(min_length=1)] | None = None


class ToolMessage(Strict):
    role: Literal["tool"]
    content: StrictStr | list[TextPart]
    tool_call_id: StrictStr


type ChatMessage = Annotated[SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


class FunctionDefinition(Strict):
    name: StrictStr
    description: StrictStr | None = None
    parameters: dict[str, Any] | None = None
    strict: StrictBool | None = None


class ChatTool(Strict):
    type: Literal["function"]
    function: FunctionDefinition


class StreamOptions(Strict):
    include_usage: StrictBool = False


class SchemaInAnswer(Strict):
    name: StrictStr
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    strict: StrictBool | None = None


class SchemaFormat(Strict):
    type: Literal["json_schema"]
    json_schema: SchemaInAnswer


class ChatRequest(Strict):
    model: StrictStr
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    stream: Literal[True]
    stream_options: StreamOptions = StreamOptions()
    tools: Annotated[list[ChatTool], Field(min_length=1)] | None = None
    stop: list[StrictStr] | None = None
    max_tokens: StrictInt | None = None
    max_completion_tokens: StrictInt | None = None
    temperature: Number | None = None
    top_p: Number | None = None
    presence_penalty: Number | None = None
    frequency_penalty: Number | None = None
    seed: StrictInt | None = None
    reasoning_effort: StrictStr | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    service_tier: Literal["auto", "default", "flex", "priority"] | None = None
    response_format: Annotated[SchemaFormat | PlainFormat, Field(discriminator="type")] | None = None


# What is refused, in the real API's words.


def check_request(request: ChatRequest) -> None:
    model = profile(request.model)
    _check_parameters(request, model)
    for position, tool in enumerate(request.tools or ()):
        check_tool(tool.function.name, tool.function.parameters, f"tools[{position}].function")
    for position, message in enumerate(request.messages):
        if message.role == "developer" and not model.is_openais:
            raise Refusal("Unexpected role: developer.", param=f"messages[{position}].role", code="invalid_value")
    _check_calls(request.messages)


def _check_parameters(request: ChatRequest, model: Profile) -> None:
    if model.reasons:
        if request.max_tokens is not None:
            raise unsupported("max_tokens", " Use 'max_completion_tokens' instead.")
        for name in ("presence_penalty", "frequency_penalty", "stop"):
            if getattr(request, name) is not None:
                raise unsupported(name)
        for name in ("temperature", "top_p"):
            value = getattr(request, name)
            if value is not None and value != 1:
                said = f"Unsupported value: '{name}' does not support {value} with this model. Only the default (1) is."
                raise Refusal(said, param=name, code="unsupported_value")
    if request.reasoning_effort is not None and model.is_openais:
        _check_effort(request, request.reasoning_effort, model)


def _check_effort(request: ChatRequest, effort: str, model: Profile) -> None:
    if not model.reasons:
        raise Refusal("Unrecognized request argument supplied: reasoning_effort")
    if effort not in model.efforts:
        said = f"Unsupported value: 'reasoning_effort' does not support '{effort}' with this model."
        raise Refusal(said, param="reasoning_effort", code="unsupported_value")
    if request.tools and effort != "none" and not model.chat_takes_tools_with_effort:
        said = f"Function tools with reasoning_effort are not supported for {request.model} in /v1/chat/completions."
        raise Refusal(said, param="reasoning_effort")


def _check_calls(messages: Sequence[ChatMessage]) -> None:
    waiting: list[str] = []
    for position, message in enumerate(messages):
        place = f"messages.[{position}]"
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                raise Refusal(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceding message with "
                    "'tool_calls'.",
                    param=f"{place}.role",
                )
            waiting.remove(message.tool_call_id)
            continue
        _refuse_unanswered(waiting)
        if isinstance(message, AssistantMessage):
            waiting = _check_assistant(message, place)
    _refuse_unanswered(waiting)


def _check_assistant(message: AssistantMessage, place: str) -> list[str]:
    if message.content is None and not message.tool_calls:
        said = "Invalid value for 'content': expected a string, got null."
        raise Refusal(said, param=f"{place}.content")
    ids = [call.id for call in message.tool_calls or ()]
    if len(set(ids)) < len(ids):
        raise Refusal("Duplicate value for 'tool_call_id'.", param=f"{place}.tool_calls")
    for number, call in enumerate(message.tool_calls or ()):
        check_name(call.function.name, f"{place}.tool_calls[{number}].function.name")
        check_arguments(call.function.arguments, f"{place}.tool_calls[{number}].function.arguments")
    return ids


def _refuse_unanswered(waiting: Sequence[str]) -> None:
    if waiting:
        raise Refusal(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}",
            param="messages",
        )


# A turn as chunks.

type Chunk = dict[str, Any]


def chat_chunks(request: ChatRequest, turn: Turn) -> Iterator[Chunk]:
    counts = request.stream_options.include_usage
    common: Chunk = {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": "chat.completion.chunk",
        "created": 1_790_000_000,
        "model": request.model,
        **({"usage": None} if counts else {}),
    }

    def chunk(delta: Chunk, finish_reason: str | None = None) -> Chunk:
        return {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in turn.pieces(turn.summary):
        yield chunk({"reasoning_content": piece})
    for piece in turn.pieces(turn.text):
        yield chunk({"content": piece})
    for fragment in _fragments(turn):
        yield chunk({"tool_calls": [fragment]})
    if turn.error is not None:
        code, message = turn.error
        yield {"error": {"message": message, "type": code, "param": None, "code": code}}
        return
    yield chunk({}, _finish_reason(turn))
    if counts and turn.tokens is not None:
        yield {**common, "choices": [], "usage": _usage(turn.tokens)}


def _fragments(turn: Turn) -> Iterator[Chunk]:
    """A call's id and name come with its first fragment, which has no arguments yet."""
    calls = [list(_of_call(turn, index, call)) for index, call in enumerate(turn.calls)]
    if turn.interleaved:
        yield from (fragment for row in zip_longest(*calls) for fragment in row if fragment is not None)
    else:
        yield from (fragment for call in calls for fragment in call)


def _of_call(turn: Turn, index: int, call: Call) -> Iterator[Chunk]:
    call_id = call.id or f"call_{uuid4().hex}"
    yield {"index": index, "id": call_id, "type": "function", "function": {"name": call.name, "arguments": ""}}
    for piece in turn.pieces(call.arguments_text):
        yield {"index": index, "function": {"arguments": piece}}


def _finish_reason(turn: Turn) -> str:
    if turn.incomplete is not None:
        return "length" if turn.incomplete == "max_output_tokens" else turn.incomplete
    return "tool_calls" if turn.calls else "stop"


def _usage(tokens: Tokens) -> Chunk:
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
        "total_tokens": tokens.prompt + tokens.completion,
        "prompt_tokens_details": {"cached_tokens": tokens.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning, "audio_tokens": 0},
    }
