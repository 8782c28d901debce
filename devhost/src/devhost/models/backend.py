"""The interface of a model, the requests it receives, and the answers it gives."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictBool, StrictStr, Tag

from devhost.protocol import structs
from devhost.protocol.failures import ApiCallError
from devhost.protocol.wire import JsonObject
from devhost.text import json_or, worded
from devhost.words import counted

# A plugin's request for a model call, decoded as the daemon and then Dify's API decode it. Unknown fields are dropped,
# as they are in Dify.

type OpaqueBodyPolicy = Literal["drop", "refuse", "keep"]
"""What a host does with `opaque_body`.

"drop" is today's Dify: it removes the body from answers, and its daemon refuses a request that has one. "refuse" is a
newer Dify: the plugin receives the body, but a request that has one is refused. "keep" is a host that carries the body
in both directions.
"""


class _Decoded(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=(), defer_build=True)


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
        """The text of the message, without its media."""
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
    SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
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
    """The daemon omits this field."""
    mode: StrictStr
    completion_params: dict[str, Any]
    prompt_messages: tuple[PromptMessage, ...]
    tools: tuple[ModelTool, ...] | None = None
    stop: tuple[StrictStr, ...] | None = None
    stream: StrictBool = True


def decode_model_request(
    request: JsonObject, opaque_body: OpaqueBodyPolicy, struct: structs.Struct = structs.LLM
) -> ModelRequest:
    """Decodes a model call. `struct` describes either a plain call or a call for structured output."""
    body = structs.to_the_api(struct, request, keeps_raw=opaque_body == "keep")
    with worded(ApiCallError.invalid_payload):
        return ModelRequest.model_validate(body)


# The interface of a model, and the shape of its answer. A backend takes a `ModelRequest` and yields chunks (see
# `chunk`), or raises `ModelCallError`. The plugin reads this error in the form in which Dify reports a provider's
# error. One backend may serve many calls at once.

type Features = tuple[str, ...]
DEFAULT_FEATURES: Features = ("tool-call", "multi-tool-call", "stream-tool-call", "vision")
FORWARDED_FEATURES = frozenset(
    {"tool-call", "multi-tool-call", "agent-thought", "vision", "stream-tool-call", "document", "video", "audio"}
)
"""The features that Dify leaves in the entity that a strategy receives; it removes all others."""


class ModelCallError(Exception):
    """An error from a provider. `error_type` is one of Dify's Invoke…Error names."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.message = message

    def as_dify_words_it(self) -> str:
        """Returns the error message that a plugin receives from Dify."""
        details = {"error_type": self.error_type, "message": self.message, "args": {}}
        said = {"message": json.dumps(details), "error_type": "PluginInvokeError", "args": None}
        return f"PluginInvokeError: {json.dumps(said)}"


@dataclass(frozen=True)
class ModelDescription:
    """A model as a node's model selector describes it."""

    provider: str
    name: str
    notice: str
    """One line for the person at the terminal that says which model answers."""
    scripted: bool
    features: Features = DEFAULT_FEATURES
    context_size: int | None = 400_000
    """The context window in tokens; `None` if it is not known, as for a model on another server."""
    completion_params: tuple[tuple[str, object], ...] = ()
    entity: JsonObject | None = None
    """The model's entity as a model plugin declares it; `None` for devhost's own models."""
    has_price: bool = False
    """Whether the usage in the model's answers includes a price."""

    @property
    def facts(self) -> JsonObject:
        """What a trace and a report record about the model."""
        return {"name": self.name, "provider": self.provider, "scripted": self.scripted, "notice": self.notice}

    def selector(self, history: Sequence[JsonObject]) -> JsonObject:
        """Returns the value of a model-selector parameter as Dify sends it to a strategy."""
        entity = self._own_entity() if self.entity is None else self.entity
        features = [feature for feature in entity.get("features") or () if feature in FORWARDED_FEATURES]
        return {
            "provider": self.provider,
            "model": self.name,
            "model_type": "llm",
            "mode": (entity.get("model_properties") or {}).get("mode") or "chat",
            "completion_params": dict(self.completion_params),
            "type": "model-selector",
            "history_prompt_messages": list(history),
            "entity": {**entity, "features": features},
        }

    def _own_entity(self) -> JsonObject:
        if self.context_size is None:
            window = {}
        else:
            window = {"context_size": self.context_size}
        return {
            "model": self.name,
            "label": {"en_US": self.name, "zh_Hans": self.name},
            "model_type": "llm",
            "features": list(self.features),
            "fetch_from": "predefined-model",
            "model_properties": {"mode": "chat", **window},
            "deprecated": False,
            "parameter_rules": [],
            "pricing": None,
        }


class ModelBackend(Protocol):
    """A model that answers a plugin's calls.

    `invoke` may be called from many threads and raises `ModelCallError` for a failure of the provider. Any other
    exception is a mistake in the backend, and `Host.run` raises it.
    """

    @property
    def description(self) -> ModelDescription: ...

    def invoke(self, request: ModelRequest, /) -> Iterator[JsonObject]:
        """Yields the chunks of the answer as they arrive."""


def chunk(  # noqa: PLR0913 - a chunk's fields, by keyword
    model: str,
    *,
    text: str = "",
    tool_calls: Sequence[JsonObject] = (),
    opaque_body: object = None,
    usage: JsonObject | None = None,
    finish_reason: str | None = None,
) -> JsonObject:
    """Returns one LLMResultChunk.

    The prompt is empty, because Dify removes it. The content is never null, because the daemon would drop it.
    """
    return {
        "model": model,
        "prompt_messages": [],
        "system_fingerprint": None,
        "delta": {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": text,
                "name": None,
                "tool_calls": list(tool_calls),
                "opaque_body": opaque_body,
            },
            "usage": usage,
            "finish_reason": finish_reason,
        },
    }


def text_of(chunk: JsonObject) -> str:
    """Returns the text of a chunk, whose content is a string or a list of parts."""
    content = chunk["delta"]["message"]["content"] or ""
    if isinstance(content, list):
        return "".join(part["data"] for part in content if part["type"] == "text")
    return str(content)


def tool_call(call_id: str, name: str, arguments: str) -> JsonObject:
    """Returns one call for `chunk(tool_calls=[…])`. `arguments` is JSON text, or a fragment of it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


# Answers to a plain call and to a call for structured output, as Dify's API gives them. Requests first pass through
# the daemon's decoding.


def model_answer(
    model: ModelBackend, struct: structs.Struct, request: JsonObject, opaque_body: OpaqueBodyPolicy
) -> Iterator[JsonObject]:
    """Returns the model's chunks.

    For structured output a last chunk follows, with the JSON object that the texts of the chunks form together.
    """
    chunks = _chunks(model, decode_model_request(request, opaque_body, struct), opaque_body)
    if struct is structs.STRUCTURED:
        return _structured(chunks)
    return chunks


def _chunks(model: ModelBackend, request: ModelRequest, opaque_body: OpaqueBodyPolicy) -> Iterator[JsonObject]:
    for chunk in model.invoke(request):
        match chunk:
            case {"delta": {"message": dict(message)}} if opaque_body == "drop":
                message.pop("opaque_body", None)
        yield chunk


def _structured(chunks: Iterator[JsonObject]) -> Iterator[JsonObject]:
    text = ""
    last = dict[str, Any]()
    for last in chunks:
        text += text_of(last)
        yield {**last, "structured_output": None}
    read = json_or(text, None)
    if not isinstance(read, dict):
        raise ApiCallError.stream_error("Failed to parse structured output: the answer is not a JSON object")
    message = {**last["delta"]["message"], "content": "", "tool_calls": []}
    yield {**last, "delta": {**last["delta"], "message": message}, "structured_output": read}


class NoModel:
    """The backend of a run without a model, which refuses every call, as Dify does if no model is configured."""

    description = ModelDescription(
        "",
        "none",
        "none: model calls of tools are refused, and a summary is the beginning of the text",
        scripted=True,
        context_size=None,
    )

    def invoke(self, request: ModelRequest, /) -> Iterator[JsonObject]:
        """Raises `ApiCallError` when the first chunk is requested."""
        raise ApiCallError.invalid(
            f"model {request.model} is not configured: set OPENAI_API_KEY, or give --model with OPENAI_BASE_URL or "
            "--model-plugin"
        )
        yield {}


# Summaries for `system_summary`. Dify's system model summarizes a long text part by part. A scripted model cannot
# summarize, and its turns are reserved for other calls.

CHARACTERS_PER_TOKEN = 4


def summary(model: ModelBackend, text: str, instruction: str) -> str:
    """Returns the text, summarized if it is too long.

    A summary that is still too long is cut, with a note about the cut. Raises `ModelCallError` if a model call fails.
    """
    # Dify keeps a text of up to 60 % of the context unchanged, and assumes 2,048 tokens if the context is not known.
    most = int((model.description.context_size or 2048) * CHARACTERS_PER_TOKEN * 0.6)
    if len(text) > most and not model.description.scripted:
        parts = (text[start : start + most] for start in range(0, len(text), most))
        text = "\n".join(_summarized(model, part, instruction) for part in parts)
    left = len(text) - most
    if left > 0:
        return f"{text[:most]}… (cut by devhost: {counted(left, 'more character')})"
    return text


def _summarized(model: ModelBackend, part: str, instruction: str) -> str:
    asked = f"Summarize the user's text, which may be a part of a longer one. Keep its main points. {instruction}"
    request = ModelRequest(
        provider=model.description.provider,
        model=model.description.name,
        mode="chat",
        completion_params={},
        prompt_messages=(SystemMessage(role="system", content=asked), UserMessage(role="user", content=part)),
    )
    return "".join(map(text_of, model.invoke(request)))
