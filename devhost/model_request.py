"""A plugin's request for a model call, decoded as strictly as the daemon and Dify decode it.

In: the `request` of a backwards call of type llm. Out: a `ModelRequest`, or a `RefusedCallError` whose text names the
field. What neither of them knows is dropped, as they drop it.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictBool, StrictStr, Tag, ValidationError

from devhost.errors import RefusedCallError
from devhost.wire import JsonObject
from devhost.yaml_file import describe

type OpaqueBodyPolicy = Literal["keep", "drop", "refuse"]
"""What hosts do with `opaque_body`: the newest keep it, older ones drop it, daemons of 2026 refuse the whole call."""


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
    provider: StrictStr
    model: StrictStr
    model_type: Literal["llm"]
    mode: StrictStr
    completion_params: dict[str, Any]
    prompt_messages: tuple[PromptMessage, ...]
    tools: tuple[ModelTool, ...] | None = None
    stop: tuple[StrictStr, ...] | None = None
    stream: StrictBool = True


def decode_model_request(request: JsonObject, opaque_body: OpaqueBodyPolicy) -> ModelRequest:
    messages = request.get("prompt_messages")
    if isinstance(messages, list) and opaque_body != "keep":
        request = {**request, "prompt_messages": _without_opaque_bodies(messages, opaque_body)}
    try:
        return ModelRequest.model_validate(request)
    except ValidationError as error:
        raise RefusedCallError(f"invoke llm request refused: {describe(error)}") from error


def _without_opaque_bodies(messages: Sequence[object], policy: OpaqueBodyPolicy) -> list[object]:
    kept: list[object] = []
    for position, message in enumerate(messages):
        body = message.get("opaque_body") if isinstance(message, dict) else None
        if body is not None and policy == "refuse":
            kind = "map" if isinstance(body, dict) else "string"
            raise RefusedCallError(
                "unmarshal backwards invoke request failed: decoding failed due to the following error(s):\n\n"
                f"'prompt_messages[{position}].opaque_body' source data must be an array or slice, got {kind}"
            )
        kept.append({**message, "opaque_body": None} if isinstance(message, dict) else message)
    return kept
