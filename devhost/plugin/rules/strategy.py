"""The daemon's rules for a strategy provider that registers for remote debugging, rule by rule.

In: the provider with its strategies, as JSON without nulls. Out: nothing, or a `RegistrationError` that names every
field at fault. A zip install does not look as closely, so that such faults ship and break in Dify later.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from devhost.plugin.rules.fields import Checked, Fault, I18n, Tag, Text, check, faults
from devhost.plugin.rules.values import Basic, Option, fitting, node_schema
from devhost.protocol.wire import JsonObject

SCOPES = {
    "app-selector": {"all", "chat", "workflow", "completion"},
    "model-selector": {
        *("llm", "text-embedding", "rerank", "tts", "speech2text"),
        *("moderation", "vision", "document", "tool-call"),
    },
    "any": {
        *("string", "number", "object"),
        *("array[number]", "array[string]", "array[object]", "array[file]"),
    },
}
FEATURE = "history-messages"


class _AutoGenerate(Checked):
    type: Literal["prompt_instruction"]


class _Template(Checked):
    enabled: StrictBool = False


class _Parameter(Checked):
    name: Text
    label: I18n
    help: I18n | None = None
    type: Literal[
        "string",
        "number",
        "boolean",
        "select",
        "secret-input",
        "file",
        "files",
        "app-selector",
        "model-selector",
        "array[tools]",
        "any",
    ]
    auto_generate: _AutoGenerate | None = None
    template: _Template | None = None
    scope: Annotated[StrictStr, Field(max_length=1024)] | None = None
    required: StrictBool = False
    min: StrictInt | StrictFloat | None = None
    max: StrictInt | StrictFloat | None = None
    precision: StrictInt | None = None
    options: tuple[Option, ...] = ()
    default: Annotated[Basic | None, AfterValidator(fitting)] = None

    @model_validator(mode="after")
    def _is_chosen(self) -> Self:
        """Dify has no empty selector: a node without a choice fails ("The selector must be a dictionary.")."""
        if self.type in {"model-selector", "app-selector"} and not self.required:
            context = {"kind": self.type}
            raise PydanticCustomError(
                "selector", "a {kind} that is not required fails the node without a choice", context
            )
        return self

    @field_validator("scope")
    @classmethod
    def _fits_type(cls, scope: str | None, checked: ValidationInfo) -> str | None:
        kind = checked.data.get("type")
        if not scope or kind is None:
            return scope
        if kind not in SCOPES:
            raise PydanticCustomError("scope", "a parameter of type {kind} has no scope", {"kind": kind})
        for part in scope.split("&"):
            if part not in SCOPES[kind]:
                context = {"part": repr(part), "known": ", ".join(sorted(SCOPES[kind]))}
                raise PydanticCustomError("scope", "{part} is none of {known} (joined by &)", context)
        return scope


def _known_feature(feature: str) -> str:
    """The enum of SDK and Dify: an unknown feature ends the plugin's start, and breaks Dify's list of providers."""
    if feature != FEATURE:
        context = {"feature": repr(feature), "known": FEATURE}
        raise PydanticCustomError(
            "feature", "{feature} is not known to the SDK and Dify; there is only {known}", context
        )
    return feature


class _StrategyIdentity(Checked):
    author: Text
    name: Annotated[StrictStr, Field(pattern=r"^[a-zA-Z0-9_-]+$")]
    label: I18n


class _Strategy(Checked):
    identity: _StrategyIdentity
    description: I18n
    parameters: tuple[_Parameter, ...] = ()
    output_schema: Annotated[dict[str, Any], AfterValidator(node_schema)] = Field(default_factory=dict)
    features: tuple[Annotated[StrictStr, Field(max_length=255), AfterValidator(_known_feature)], ...] = ()


class _ProviderIdentity(Checked):
    author: Text
    name: Annotated[StrictStr, Field(pattern=r"^[a-zA-Z0-9_-]+$")]
    label: I18n
    description: I18n
    icon: Text
    icon_dark: StrictStr = ""
    tags: tuple[Tag, ...] = ()


class _StrategyProvider(Checked):
    identity: _ProviderIdentity
    strategies: Annotated[list[_Strategy], Field(min_length=1)]


def check_strategy_provider(provider: JsonObject, where: str) -> None:
    check(_StrategyProvider, provider, where)


def strategy_provider_faults(provider: JsonObject) -> list[Fault]:
    return faults(_StrategyProvider, provider)
