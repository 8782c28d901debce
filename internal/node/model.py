"""The model from the node's panel, the history and files that it accepts, and the fallback model."""

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Self

from dify_plugin.entities.model.llm import LLMModelConfig
from dify_plugin.entities.model.message import (
    AudioPromptMessageContent,
    DocumentPromptMessageContent,
    ImagePromptMessageContent,
    PromptMessage,
    PromptMessageContentUnionTypes,
    PromptMessageRole,
    TextPromptMessageContent,
    VideoPromptMessageContent,
    ensure_prompt_message,
)
from dify_plugin.file.file import File
from gevent import Timeout
from gevent.pool import Pool
from pydantic import BaseModel, ConfigDict

from internal.clock import in_turns
from internal.errors import InvalidParameters, Note, OurWords, Quoting
from internal.host.files import FileNotDelivered, FileUnavailable, fetch_file, sniff_mime_type
from internal.text.secrets import Redactor
from internal.text.texts import looks_like_selector, missing_variable
from internal.text.thoughts import without_thoughts
from prompt import template, tool_errors

type Part = PromptMessageContentUnionTypes
type Medium = (
    ImagePromptMessageContent | DocumentPromptMessageContent | AudioPromptMessageContent | VideoPromptMessageContent
)

_TOOL_CALL_FEATURES = {"tool-call", "multi-tool-call"}
_STREAMED_CALLS = "stream-tool-call"
_NAMED_MODEL = re.compile(r"(?P<provider>[\w.-]+/[\w.-]+/[\w.-]+)/(?P<model>\S(?:[^\r\n]{0,253}\S)?)", re.ASCII)
_CONVERSATION_ROLES = {"system", "user", "assistant", "tool"}
"""The only roles that Dify accepts in a request."""
_PARTS: dict[str, tuple[str, type[Medium]]] = {
    "image": ("vision", ImagePromptMessageContent),
    "document": ("document", DocumentPromptMessageContent),
    "audio": ("audio", AudioPromptMessageContent),
    "video": ("video", VideoPromptMessageContent),
}
"""The feature that a model needs for each kind of file, and the type in which the file is sent."""
MAX_FILE_BYTES = 3 * 1024 * 1024 // 4 * 3
"""Maximum bytes of one file: as base64 in a request, it takes 3 MiB."""
VISIBLE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
"""Types of pictures that models with vision accept (docs/model-facts.md, "Pictures")."""
_MOST_TOKENS = 10**12
"""Maximum context size, more than any model accepts. A number with hundreds of digits would break calculations."""
_FETCH_SECONDS = 10
"""Maximum seconds to fetch one file, from the first byte to the last."""
_FETCHED_AT_ONCE = 8
_ADDRESSES = "an upload's address begins with Dify's INTERNAL_FILES_URL, else with FILES_URL"


class ModelSelection(BaseModel):
    """The chosen model, whose values are parsed leniently."""

    model_config = ConfigDict(frozen=True, protected_namespaces=(), hide_input_in_errors=True)

    config: LLMModelConfig
    """The provider, model, mode and completion_params, without the entity and the history that Dify also sends."""
    features: frozenset[str] | None = None
    """The features of the model; None if the host sent no entity."""
    context_size: int | None = None
    """The context window in tokens; None if unknown."""
    defaults: Mapping[str, Any] = {}
    """Default values of the parameters that the model declares, by name."""
    history: tuple[PromptMessage, ...] = ()
    stop: tuple[str, ...] = ()
    """Stop words, removed from the completion parameters, because requests have a separate field for stop words."""

    @property
    def max_tokens(self) -> int:
        """Number of tokens that the developer reserved for one answer; 0 if not set."""
        return _positive_int(self.config.completion_params.get("max_tokens")) or 0

    def can_call_tools(self) -> bool:
        """Return whether the model may be able to call tools. An unknown model is tried."""
        return self.lists_tool_calls() or _STREAMED_CALLS in (self.features or ())

    def lists_tool_calls(self) -> bool:
        """Return whether Dify lists tool calls among the model's features, or does not describe the model.

        The feature of streamed calls alone does not count: the SDK's class for compatible servers lists it for a model
        that a person enters, even if it drops the tools.
        """
        return self.features is None or bool(self.features & _TOOL_CALL_FEATURES)

    def can_take(self, kind: str) -> bool:
        """Return whether the model accepts such files. An unknown model accepts only images, like all GPT-5 models."""
        feature, _ = _PARTS.get(kind, (None, None))
        if self.features is not None:
            return feature in self.features
        return feature == "vision"

    def redacted(self, secrets: Redactor) -> Self:
        """Return a copy in which the node's secrets are redacted from the conversation so far."""

        def redacted(medium: Medium) -> Part:
            return medium.model_copy(update={"filename": secrets.text(medium.filename)})

        history = tuple(_changed(message, secrets.text, redacted) for message in in_turns(self.history))
        return self.model_copy(update={"history": history})

    def visible_history(self, thought_tags: tuple[str, ...] = ()) -> tuple[PromptMessage, ...]:
        """Return the history without stored thoughts, and without media that the model refuses."""

        def visible(medium: Medium) -> Part:
            if self.can_take(medium.type.value):
                return medium
            return _hidden(medium.type.value, medium.filename)

        cleaning = {PromptMessageRole.ASSISTANT: partial(without_thoughts, tags=thought_tags)}
        return tuple(_changed(message, cleaning.get(message.role, str), visible) for message in in_turns(self.history))

    @classmethod
    def read(cls, raw: object, note: Note) -> Self:
        values = _mapping(raw)
        if not values.get("provider") or not values.get("model"):
            raise InvalidParameters("parameter 'model': no model is chosen; choose one in the node's panel")
        entity = values.get("entity")
        completion_params = dict(_mapping(values.get("completion_params")))
        stop = completion_params.pop("stop", None)
        features = _mapping(entity).get("features")
        return cls(
            config=LLMModelConfig(
                provider=str(values["provider"]),
                model=str(values["model"]),
                mode=str(values.get("mode") or "chat"),
                completion_params=completion_params,
            ),
            features=frozenset(map(str, _list(features))) if isinstance(entity, Mapping) else None,
            defaults={
                str(rule.get("name")): rule.get("default")
                for rule in map(_mapping, _list(_mapping(entity).get("parameter_rules")))
            },
            context_size=_positive_int(_mapping(_mapping(entity).get("model_properties")).get("context_size")),
            history=tuple(_read_history(values.get("history_prompt_messages"), note)),
            stop=tuple(word for word in [stop, *_list(stop)] if isinstance(word, str) and word),
        )


def read_fallback_model(text: str) -> LLMModelConfig | None:
    """Parse ``fallback_model``; None if it is blank. A model's name may contain slashes."""
    if not (text := text.strip()):
        return None
    if named := _NAMED_MODEL.fullmatch(text):
        return LLMModelConfig(provider=named["provider"], model=named["model"], mode="chat")
    advice = "write it as plugin author/plugin/provider/model, for example langgenius/openai/openai/gpt-5-mini"
    if looks_like_selector(text):
        problem = missing_variable(text)
    else:
        problem = f"{advice}; blank means none"
    raise InvalidParameters(f"parameter 'fallback_model': {problem}")


def _mapping(value: object) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    return {}


def _list(value: object) -> list[Any]:
    if isinstance(value, list):
        return value
    return []


def _positive_int(value: object) -> int | None:
    try:
        number = 0
        if isinstance(value, int | float | str):
            number = int(value)
    except (ValueError, OverflowError):
        return None
    if number > 0:
        return min(number, _MOST_TOKENS)
    return None


def _read_history(raw: object, note: Note) -> Iterator[PromptMessage]:
    for position, item in in_turns(enumerate(_list(raw), start=1)):
        try:
            message = ensure_prompt_message(item)
        except (TypeError, ValueError):
            message = None
        if message and message.role.value in _CONVERSATION_ROLES:
            yield message
        else:
            note(OurWords(f"model: message {position} of the history cannot be read and is left out"))


def _changed(message: PromptMessage, text: Callable[[str], str], medium: Callable[[Medium], Part]) -> PromptMessage:
    """Return the message with its texts and media replaced. Dify's memory has no calls."""

    def changed(part: Part) -> Part:
        if isinstance(part, TextPromptMessageContent):
            return part.model_copy(update={"data": text(part.data)})
        return medium(part)

    content = message.content or ""
    shown: str | list[Part]
    if isinstance(content, str):
        shown = text(content)
    else:
        shown = [changed(part) for part in content]
    if shown == message.content:  # copying the message would take longer than parsing it
        return message
    return message.model_copy(update={"content": shown})


def file_parts(
    files: Sequence[File], model: ModelSelection, seconds: float
) -> tuple[tuple[Part, ...], tuple[Quoting, ...]]:
    """Fetch this turn's files in parallel; return parts for the model, and a sentence for each file that failed."""
    if not files:
        return (), ()
    notes = list[Quoting]()
    read = partial(_file_part, model=model, seconds=min(seconds, _FETCH_SECONDS), note=notes.append)
    return tuple(Pool(_FETCHED_AT_ONCE).map(read, files)), tuple(notes)


def _file_part(file: File, model: ModelSelection, seconds: float, note: Callable[[Quoting], None]) -> Part:
    name = " ".join((file.filename or "unnamed").split())
    if not model.can_take(file.type):
        return _hidden(file.type, name)
    try:
        with Timeout(seconds, FileNotDelivered(tool_errors.NOT_FETCHED_IN_TIME)):
            data = fetch_file(file.url, file.size or 0, MAX_FILE_BYTES)
    except FileUnavailable as reason:
        if isinstance(reason, FileNotDelivered):
            server = "/".join(file.url.split("/")[:3]).rpartition("@")[2]  # the rest contains a signature
            note(Quoting(f"{server} did not deliver the file {name}: {reason}; {_ADDRESSES}"))
        return TextPromptMessageContent(data=f"[{file.type.value} {name}: {reason}]")
    return content_of(file.type, data, file.mime_type or sniff_mime_type(data), name, file.extension or "")


def content_of(kind: str, data: bytes, mime_type: str, name: str, extension: str = "") -> Medium:
    """Return a file as a part of a message for the model."""
    part = _PARTS[kind][1](
        format=extension.removeprefix(".") or mime_type.rsplit("/", 1)[-1],
        base64_data=base64.b64encode(data).decode(),
        mime_type=mime_type,
        filename=name,
    )
    if isinstance(part, ImagePromptMessageContent):
        part.detail = ImagePromptMessageContent.DETAIL.HIGH  # as Dify sends the images of the history
    return part


def _hidden(kind: str, name: str | None) -> Part:
    return TextPromptMessageContent(data=template.HIDDEN_MEDIA.format(kind=kind, name=f" {name}" if name else ""))
