"""The shape of a request to /v1/chat/completions, as far as devhost has any use for it; nothing else gets in."""

from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr

from fake_openai.responses_schema import Strict

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


class PlainFormat(Strict):
    type: Literal["text", "json_object"]


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
