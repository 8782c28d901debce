"""The daemon's rules for a strategy provider that registers for remote debugging, rule by rule.

In: the provider with its strategies, as JSON without nulls. Out: nothing, or a `RegistrationError` that names every
field at fault. A zip install does not look as closely, so that such faults ship and break in Dify later.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StrictBool, StrictStr, model_validator
from pydantic_core import PydanticCustomError

from devhost.plugin.rules.fields import Checked, Fault, I18n, Tag, Text, check, faults
from devhost.plugin.rules.values import Basic, Parameter, fitting
from devhost.protocol.wire import JsonObject

FEATURE = "history-messages"
RESERVED = frozenset({"text", "files", "json"})
"""Outputs of every node: Dify fails a node whose plugin sends a variable of such a name."""


class _Parameter(Parameter):
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


def _known_feature(feature: str) -> str:
    """The enum of SDK and Dify: an unknown feature ends the plugin's start, and breaks Dify's list of providers."""
    if feature != FEATURE:
        context = {"feature": repr(feature), "known": FEATURE}
        raise PydanticCustomError(
            "feature", "{feature} is not known to the SDK and Dify; there is only {known}", context
        )
    return feature


def _node_outputs(schema: dict[str, Any]) -> dict[str, Any]:
    """The daemon takes any object, and Dify lists its properties as the node's variables."""
    properties = schema.get("properties")
    if taken := sorted(RESERVED & set(properties if isinstance(properties, dict) else ())):
        context = {"taken": ", ".join(taken)}
        raise PydanticCustomError("node_outputs", "Dify uses these names itself, and fails the node: {taken}", context)
    return schema


class _StrategyIdentity(Checked):
    author: Text
    name: Annotated[StrictStr, Field(pattern=r"^[a-zA-Z0-9_-]+$")]
    label: I18n


class _Strategy(Checked):
    identity: _StrategyIdentity
    description: I18n
    parameters: tuple[_Parameter, ...] = ()
    output_schema: Annotated[dict[str, Any], AfterValidator(_node_outputs)] = Field(default_factory=dict)
    features: tuple[Annotated[StrictStr, Field(max_length=255), AfterValidator(_known_feature)], ...] = ()
    has_runtime_parameters: StrictBool = False
    extra: Any = None


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
    extra: Any = None


def check_strategy_provider(provider: JsonObject, where: str) -> None:
    check(_StrategyProvider, provider, where)


def strategy_provider_faults(provider: JsonObject) -> list[Fault]:
    return faults(_StrategyProvider, provider)
