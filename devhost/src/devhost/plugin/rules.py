"""The rules for declarations, field by field: the daemon's for manifests, strategies and tools, and the marketplace's.

The daemon looks this closely only when a plugin registers for remote debugging: a package with such a fault is
installed, and breaks in use.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from devhost.plugin.declaration import FILES, CredentialType, Permission, ToolParameterForm, ToolParameterType
from devhost.plugin.problems import LANGUAGES, Level, Problem
from devhost.protocol.wire import JsonObject

LOST = "lost"
"""The type of a fault that Dify does not refuse: it takes the value and does not use it."""
TAGS = {
    *("search", "image", "videos", "weather", "finance", "design", "travel", "social", "news", "medical"),
    *("productivity", "education", "business", "entertainment", "utilities", "agent", "rag", "other", "trigger"),
}
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
RESERVED = frozenset({"text", "files", "json"})
"""Outputs of every node: Dify fails a node whose plugin sends a variable of such a name."""


class Checked(BaseModel):
    """The fields are those of the daemon's struct and of the SDK's model; both lose every other key."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _wrong(sentence: str, how: str = "wrong") -> PydanticCustomError:
    return PydanticCustomError(how, "{sentence}", {"sentence": sentence})


def _known_tag(tag: str) -> str:
    if tag not in TAGS:
        raise _wrong(f"{tag!r} is none of {', '.join(sorted(TAGS))}")
    return tag


def _rfc3339(value: object) -> object:
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$", value):
        return datetime.fromisoformat(value)
    raise _wrong(f"{value!r} is not a time as in RFC 3339")


def _dotted(version: str) -> str:
    if not re.fullmatch(r"\d{1,4}(\.\d{1,4}){2}(-\w{1,16})?", version):
        raise _wrong(f"{version!r} is not a version such as 0.2.0 or 0.2.0-beta1")
    return version


type Text = Annotated[StrictStr, Field(min_length=1, max_length=1023)]
type ShortText = Annotated[StrictStr, Field(max_length=1023)]
type Name = Annotated[StrictStr, Field(pattern=r"^[a-zA-Z0-9_-]+$")]
type Tag = Annotated[StrictStr, AfterValidator(_known_tag)]
type Path = Annotated[StrictStr, Field(min_length=1, max_length=128)]
type Version = Annotated[StrictStr, AfterValidator(_dotted)]
type Basic = StrictStr | StrictBool | StrictInt | StrictFloat


class I18n(Checked):
    en_US: Text  # noqa: N815 - the key in the YAML
    ja_JP: ShortText = ""  # noqa: N815
    zh_Hans: ShortText = ""  # noqa: N815
    pt_BR: ShortText = ""  # noqa: N815


# Manifests.


class _Resource(Checked):
    memory: Annotated[StrictInt, Field(gt=0)]
    permission: Permission | None = None


class _Plugins(Checked):
    agent_strategies: tuple[Path, ...] = ()
    tools: tuple[Path, ...] = ()
    models: tuple[Path, ...] = ()
    endpoints: tuple[Path, ...] = ()
    datasources: tuple[Path, ...] = ()
    triggers: tuple[Path, ...] = ()


class _Runner(Checked):
    language: Literal["python"]
    version: Path
    entrypoint: Annotated[StrictStr, Field(min_length=1, max_length=256)]


class _Meta(Checked):
    version: Version
    arch: Annotated[list[Literal["amd64", "arm64"]], Field(min_length=1)]
    runner: _Runner
    minimum_dify_version: StrictStr | None = None


class _Manifest(Checked):
    version: Version
    type: Literal["plugin"]
    author: Annotated[StrictStr, Field(pattern=r"^[a-z0-9_-]{1,64}$")]
    name: Annotated[StrictStr, Field(pattern=r"^[a-z0-9_-]{1,128}$")]
    label: I18n
    description: I18n
    icon: Path
    icon_dark: Annotated[StrictStr, Field(max_length=128)] = ""
    created_at: Annotated[datetime, BeforeValidator(_rfc3339)]
    resource: _Resource
    plugins: _Plugins
    meta: _Meta
    tags: tuple[Tag, ...] = ()
    verified: Any = None
    privacy: Any = None
    repo: Any = None
    contact: Any = None
    """This one the marketplace alone reads."""


TAKEN = re.compile("langgenius|dify")


def marketplace_problems(manifest: JsonObject) -> Iterator[Problem]:
    """What the marketplace asks of a manifest beyond the daemon."""
    wanted = {
        "repo": (r"https://\S+", "give the address of the source code"),
        "contact": (r"[^@\s]+@[^@\s]+", "give an e-mail address"),
        "privacy": (r".+", "name the privacy policy, such as PRIVACY.md"),
    }
    for key, (pattern, sentence) in wanted.items():
        if not re.fullmatch(pattern, str(manifest.get(key) or "")):
            yield Problem("marketplace", "manifest.yaml", key, sentence, level="marketplace")
    if taken := TAKEN.search(str(manifest.get("author"))):
        sentence = f"it contains {taken[0]!r}, which stands for Dify's own plugins"
        yield Problem("marketplace", "manifest.yaml", "author", sentence, level="marketplace")


# Parameters, which strategies and tools share.


class _Option(Checked):
    value: Text
    label: I18n
    icon: StrictStr = ""
    show_on: Any = None


class _Parameter(Checked):
    """What a parameter has in both; `type` is defined by each."""

    name: Text
    label: I18n
    type: str
    auto_generate: dict[str, Any] | None = None
    template: dict[str, Any] | None = None
    scope: Annotated[StrictStr, Field(max_length=1024)] | None = None
    required: StrictBool = False
    min: StrictInt | StrictFloat | None = None
    max: StrictInt | StrictFloat | None = None
    precision: StrictInt | None = None
    options: tuple[_Option, ...] = ()

    @field_validator("scope")
    @classmethod
    def _fits_type(cls, scope: str | None, checked: ValidationInfo) -> str | None:
        """The daemon is content with one part that it knows."""
        kind = checked.data.get("type")
        if not scope or kind is None:
            return scope
        if kind not in SCOPES:
            raise _wrong(f"a parameter of type {kind} has no scope")
        if not SCOPES[kind].intersection(part.strip() for part in scope.split("&")):
            raise _wrong(f"{scope!r} has none of {', '.join(sorted(SCOPES[kind]))} (joined by &)")
        return scope


def _fitting[T](default: T, checked: ValidationInfo) -> T:
    """One with which Dify builds the parameter; type and options of the parameter are checked before."""
    kind, options = checked.data.get("type"), checked.data.get("options")
    if default is None or default == "" or checked.data.get("multiple"):
        return default
    if kind == "select" and options is not None:
        values = [option.value for option in options]
        if default not in values:
            quoted = ": write it in quotes" if str(default) in values else ""
            there_are = ", ".join(values) or "none"
            raise _wrong(f"{default!r} is not among the options: {there_are}{quoted}")
    if kind == "number" and isinstance(default, str):
        try:
            float(default) if "." in default else int(default)  # as in Dify's cast: 1e3 without a dot is not one
        except ValueError:
            raise _wrong(f"{default!r} is not a number") from None
    return default


class _Identity(Checked):
    author: Text
    name: Name
    label: I18n


class _ProviderIdentity(_Identity):
    description: I18n
    icon: Text
    icon_dark: StrictStr = ""
    tags: tuple[Tag, ...] = ()


# Strategies.


type _Typed = Literal["string", "number", "boolean", "select", "secret-input", "file", "files"]
type _StrategyParameterType = Literal[_Typed, "app-selector", "model-selector", "array[tools]", "any"]


class _StrategyParameter(_Parameter):
    help: I18n | None = None
    type: _StrategyParameterType
    default: Annotated[Basic | None, AfterValidator(_fitting)] = None

    @model_validator(mode="after")
    def _is_chosen(self) -> Self:
        """Dify has no empty selector: a node without a choice fails ("The selector must be a dictionary.")."""
        if self.type in {"model-selector", "app-selector"} and not self.required:
            raise _wrong(f"a {self.type} that is not required fails the node without a choice")
        return self


def _known_feature(feature: str) -> str:
    """The enum of SDK and Dify: an unknown feature ends the plugin's start, and breaks Dify's list of providers."""
    if feature != FEATURE:
        raise _wrong(f"{feature!r} is not known to the SDK and Dify; there is only {FEATURE}")
    return feature


def _node_outputs(schema: dict[str, Any]) -> dict[str, Any]:
    """The daemon takes any object, and Dify lists its properties as the node's variables."""
    properties = schema.get("properties")
    if taken := sorted(RESERVED & set(properties if isinstance(properties, dict) else ())):
        raise _wrong(f"Dify uses these names itself, and fails the node: {', '.join(taken)}")
    return schema


class _Strategy(Checked):
    identity: _Identity
    description: I18n
    parameters: tuple[_StrategyParameter, ...] = ()
    output_schema: Annotated[dict[str, Any], AfterValidator(_node_outputs)] = Field(default_factory=dict)
    features: tuple[Annotated[StrictStr, Field(max_length=255), AfterValidator(_known_feature)], ...] = ()
    has_runtime_parameters: StrictBool = False
    extra: Any = None


class _StrategyProvider(Checked):
    identity: _ProviderIdentity
    strategies: Annotated[list[_Strategy], Field(min_length=1)]
    extra: Any = None


# Tools.


class _ToolParameter(_Parameter):
    human_description: I18n
    type: ToolParameterType
    form: ToolParameterForm
    llm_description: StrictStr = Field(default="", validate_default=True)
    multiple: StrictBool = False
    default: Any = None
    show_on: Any = None

    @field_validator("llm_description")
    @classmethod
    def _told(cls, description: str, checked: ValidationInfo) -> str:
        """Dify shows no model a parameter for files."""
        is_told = checked.data.get("form") == "llm" and checked.data.get("type") not in FILES
        if is_told and not description.strip():
            raise _wrong("it is missing: the model reads the parameter's name alone", LOST)
        return description

    @field_validator("default")
    @classmethod
    def _fits(cls, default: object, checked: ValidationInfo) -> object:
        """Dify takes the default of nothing that the model fills."""
        return _fitting(default, checked) if checked.data.get("form") == "form" else default


class _Description(Checked):
    human: I18n
    llm: Annotated[StrictStr, Field(min_length=1)]


class _Tool(Checked):
    identity: _Identity
    description: _Description
    parameters: tuple[_ToolParameter, ...] = ()
    output_schema: dict[str, Any] | None = None
    """Any object, which the daemon stores unread."""
    has_runtime_parameters: StrictBool = False
    extra: Any = None


class _Credential(Checked):
    name: StrictStr = ""
    type: CredentialType
    scope: StrictStr | None = None
    label: I18n
    required: StrictBool = False
    multiple: StrictBool = False
    default: Basic | None = None
    options: tuple[_Option, ...] = ()
    help: I18n | None = None
    placeholder: I18n | None = None
    url: StrictStr | None = None


class _OAuth(Checked):
    client_schema: tuple[_Credential, ...] = ()
    credentials_schema: tuple[_Credential, ...] = ()


class _ToolProvider(Checked):
    identity: _ProviderIdentity
    credentials_for_provider: dict[str, _Credential] = Field(default_factory=dict)
    credentials_schema: Any = None
    oauth_schema: _OAuth | None = None
    tools: Annotated[list[_Tool], Field(min_length=1)]
    extra: Any = None


# The faults of a declaration.

DECLARATIONS: dict[str, type[Checked]] = {
    "manifest": _Manifest,
    "agent_strategies": _StrategyProvider,
    "tools": _ToolProvider,
}
"""A manifest, and a provider with its parts, by its kind in the manifest."""
type Way = tuple[str | int, ...]


@dataclass(frozen=True)
class Fault:
    """A field of a declaration that breaks a rule."""

    path: Way
    level: Level
    sentence: str


def faults(kind: str, value: JsonObject) -> list[Fault]:
    """Each field once, although a field of several types breaks the rules of each."""
    found: dict[Way, Fault] = {}
    try:
        DECLARATIONS[kind].model_validate(value, extra="forbid")  # also in the models of `declaration`
    except ValidationError as error:
        for each in error.errors():
            path, sentence = each["loc"], each["msg"]
            level: Level = "notice" if each["type"] in {LOST, "extra_forbidden"} else "refused"
            if path[-1] in {"str", "bool", "int", "float"}:  # pydantic names the types of a union behind the field
                path = path[:-1]
            if each["type"] == "extra_forbidden":
                sentence = f"Dify drops it: it has no such key, and texts in {', '.join(LANGUAGES)} only"
            elif each["type"] == "string_type" and isinstance(each["input"], int | float):
                sentence = f"{sentence}: write it in quotes"
            found.setdefault(path, Fault(path, level, sentence))
    return list(found.values())
