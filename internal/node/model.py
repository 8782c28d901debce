"""The model that the node's panel chose, and the one that takes over when it fails."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Self

from dify_plugin.entities.model import ModelType
from dify_plugin.entities.model.llm import LLMModelConfig
from dify_plugin.entities.model.message import (
    MultiModalPromptMessageContent,
    PromptMessage,
    PromptMessageContentUnionTypes,
    ensure_prompt_message,
)
from pydantic import BaseModel, ConfigDict

from internal.errors import InvalidParameters, Note, OurWords
from internal.text.secrets import Redactor
from internal.text.texts import looks_like_selector, missing_variable

_TOOL_CALL_FEATURES = {"tool-call", "multi-tool-call", "stream-tool-call"}
_NAMED_MODEL = re.compile(r"(?P<provider>[\w.-]+/[\w.-]+/[\w.-]+)/(?P<model>\S(?:[^\r\n]{0,253}\S)?)", re.ASCII)
_CONVERSATION_ROLES = {"system", "user", "assistant", "tool"}
"""The only ones that Dify takes in a request."""


class ModelSelection(BaseModel):
    """The chosen model, read leniently."""

    model_config = ConfigDict(frozen=True, protected_namespaces=(), hide_input_in_errors=True)

    config: LLMModelConfig
    """provider, model, mode and completion_params, without the entity and history that Dify sends along."""
    features: frozenset[str] | None = None
    """None when the host sent no entity."""
    context_size: int | None = None
    """Tokens; None if unknown."""
    history: tuple[PromptMessage, ...] = ()
    stop: tuple[str, ...] = ()
    """Stop words, taken out of the completion parameters: requests have a field of their own for them."""

    @property
    def max_tokens(self) -> int:
        """Tokens the developer reserved for one answer, 0 when unset."""
        return _positive_int(self.config.completion_params.get("max_tokens")) or 0

    def can_call_tools(self) -> bool:
        """Whether the model may be able to call tools; an unknown model is tried."""
        return self.features is None or bool(self.features & _TOOL_CALL_FEATURES)

    def redacted(self, secrets: Redactor) -> Self:
        """The same without the node's secrets in the conversation so far."""
        return self.model_copy(update={"history": tuple(_redacted(message, secrets) for message in self.history)})

    @classmethod
    def read(cls, raw: object, note: Note) -> Self:
        """Read the ``model`` parameter.

        Raises:
            ValueError: no model was chosen.
        """
        values = _mapping(raw)
        if not values.get("provider") or not values.get("model"):
            raise ValueError("parameter 'model': no model is chosen; choose one in the node's panel")
        entity, completion_params = values.get("entity"), dict(_mapping(values.get("completion_params")))
        stop, features = completion_params.pop("stop", None), _mapping(entity).get("features")
        return cls(
            config=_config(values["provider"], values["model"], values.get("mode") or "chat", completion_params),
            features=frozenset(map(str, _list(features))) if isinstance(entity, Mapping) else None,
            context_size=_positive_int(_mapping(_mapping(entity).get("model_properties")).get("context_size")),
            history=tuple(_read_history(values.get("history_prompt_messages"), note)),
            stop=tuple(word for word in [stop, *_list(stop)] if isinstance(word, str) and word),
        )


def read_fallback_model(text: str) -> LLMModelConfig | None:
    """The model that ``fallback_model`` names; None if it is blank. A model's name may contain slashes.

    Raises:
        InvalidParameters: the text does not name a model.
    """
    text = text.strip()
    if not text:
        return None
    if named := _NAMED_MODEL.fullmatch(text):
        return _config(named["provider"], named["model"], "chat", {})
    advice = "write it as plugin author/plugin/provider/model, for example langgenius/openai/openai/gpt-5-mini"
    problem = missing_variable(text) if looks_like_selector(text) else f"{advice}; blank means none"
    raise InvalidParameters(f"parameter 'fallback_model': {problem}")


def _config(provider: object, model: object, mode: object, params: dict[str, Any]) -> LLMModelConfig:
    kind = ModelType.LLM
    return LLMModelConfig(
        provider=str(provider), model=str(model), model_type=kind, mode=str(mode), completion_params=params
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _positive_int(value: object) -> int | None:
    try:
        number = int(value) if isinstance(value, int | float | str) else 0
    except (ValueError, OverflowError):
        return None
    return number if number > 0 else None


def _read_history(raw: object, note: Note) -> Iterator[PromptMessage]:
    for position, item in enumerate(_list(raw), start=1):
        try:
            message = ensure_prompt_message(item)
        except (TypeError, ValueError):
            message = None
        if message and message.role.value in _CONVERSATION_ROLES:
            yield message
        else:
            note(OurWords(f"model: message {position} of the history cannot be read and is left out"))


def _redacted(message: PromptMessage, secrets: Redactor) -> PromptMessage:
    """A message without secrets in its texts and its files' names; the memory holds no calls."""

    def redacted(part: PromptMessageContentUnionTypes) -> PromptMessageContentUnionTypes:
        field = "filename" if isinstance(part, MultiModalPromptMessageContent) else "data"
        return part.model_copy(update={field: secrets.text(getattr(part, field))})

    content = message.content
    shown = secrets.text(content) if isinstance(content, str) else content and [redacted(part) for part in content]
    return message.model_copy(update={"content": shown})
