"""A plugin's request for a model call, decoded as the daemon and then Dify's API decode it.

In: the `request` of a backwards call for a model. Out: a `ModelRequest`; `RefusedCallError` in the daemon's words, or
`ApiCallError` in those of the API. What neither of them knows is dropped, as they drop it.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictBool, StrictStr, Tag, ValidationError

from devhost.protocol import requests
from devhost.protocol.failures import ApiCallError
from devhost.protocol.golang.shapes import Record
from devhost.protocol.wire import JsonObject
from devhost.text.yaml_file import describe

type OpaqueBodyPolicy = Literal["drop", "refuse", "keep"]
"""What hosts do with `opaque_body`. Today's Dify drops it from answers, and its daemon refuses a request that has one;
with a newer Dify it arrives and is refused on its way back; a host that keeps it carries it both ways."""


class _Decoded(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())


class TextPart(_Decoded):
    type: Literal["text"]
    data: StrictStr


class MediaPart(_Decoded):
    type: Literal["image", "audio", "video", "document"]
    format: StrictStr
    mime_type: StrictStr
    base64_data: StrictStr = ""
    url: StrictStr = ""
    filename: StrictStr = ""
    detail: Literal["low", "high"] | None = None


type Part = Annotated[TextPart | MediaPart, Field(discriminator="type")]
type Content = Annotated[StrictStr, Tag("text")] | Annotated[tuple[Part, ...], Tag("parts")] | None


class CalledFunction(_Decoded):
    name: StrictStr
    arguments: StrictStr


class ToolCall(_Decoded):
    id: StrictStr
    type: StrictStr
    function: CalledFunction


class _Message(_Decoded):
    content: Content = None
    name: StrictStr | None = None

    @property
    def text(self) -> str:
        """The words of the message, without its media."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.data for part in self.content or () if isinstance(part, TextPart))


class SystemMessage(_Message):
    role: Literal["system"]


class UserMessage(_Message):
    role: Literal["user"]


class AssistantMessage(_Message):
    role: Literal["assistant"]
    tool_calls: tuple[ToolCall, ...] = ()
    opaque_body: JsonValue = None


class ToolMessage(_Message):
    role: Literal["tool"]
    tool_call_id: StrictStr


type PromptMessage = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolMessage,
    Field(discriminator="role"),
]


class ModelTool(_Decoded):
    name: StrictStr
    description: StrictStr
    parameters: dict[str, Any]


class ModelRequest(_Decoded):
    """A model call as Dify's API hands it to a model plugin: prompt messages, tools and completion parameters."""

    provider: StrictStr
    model: StrictStr
    model_type: Literal["llm"] = "llm"
    """The daemon leaves it out."""
    mode: StrictStr
    completion_params: dict[str, Any]
    prompt_messages: tuple[PromptMessage, ...]
    tools: tuple[ModelTool, ...] | None = None
    stop: tuple[StrictStr, ...] | None = None
    stream: StrictBool = True


def decode_model_request(
    request: JsonObject, opaque_body: OpaqueBodyPolicy, record: Record = requests.LLM
) -> ModelRequest:
    """`record` is what the daemon reads: a plain call, or one for structured output."""
    bodies: list[object] = []
    if opaque_body == "keep":
        request, bodies = _without_opaque_bodies(request)
    body = requests.to_the_api(record, request)
    for message, carried in zip(body["prompt_messages"] or (), bodies, strict=False):
        message["opaque_body"] = carried
    try:
        return ModelRequest.model_validate(body)
    except ValidationError as error:
        raise ApiCallError.invalid(f"invalid payload: {describe(error)}") from error


def _without_opaque_bodies(request: JsonObject) -> tuple[JsonObject, list[object]]:
    """The request as a daemon that knows the field would read it, and what it carries, by message."""
    messages = request.get("prompt_messages")
    if not isinstance(messages, list):
        return request, []
    bodies = [message.get("opaque_body") if isinstance(message, dict) else None for message in messages]
    without = [{**message, "opaque_body": None} if isinstance(message, dict) else message for message in messages]
    return {**request, "prompt_messages": without}, bodies
