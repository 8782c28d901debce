"""The rules for manifests, strategies and tools: the daemon's, rule by rule, and the marketplace's."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from packaging.version import InvalidVersion
from packaging.version import Version as PythonVersion
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from devhost.plugin.rules.fields import (
    Basic,
    Checked,
    Fault,
    I18n,
    Option,
    Parameter,
    Path,
    Tag,
    Text,
    check,
    faults,
    fitting,
)
from devhost.plugin.rules.listed import Problem
from devhost.plugin.rules.types import FILES, CredentialType, ToolParameterForm, ToolParameterType
from devhost.protocol.wire import JsonObject


def _rfc3339(value: object) -> object:
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$", value):
        return datetime.fromisoformat(value)
    raise PydanticCustomError("rfc3339", "{value} is not a time as in RFC 3339", {"value": repr(value)})


def _pep440(version: str) -> str:
    try:
        PythonVersion(version)
    except InvalidVersion:
        context = {"version": repr(version)}
        raise PydanticCustomError(
            "pep440", "{version} is not a version by PEP 440, as which Dify reads it", context
        ) from None
    return version


def _not_a_uuid(author: str) -> str:
    if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", author):
        raise PydanticCustomError("uuid", "a UUID stands for a plugin under remote debugging; give a name")
    return author


def _dotted(version: str) -> str:
    if not re.fullmatch(r"\d{1,4}(\.\d{1,4}){2}(-\w{1,16})?", version):
        context = {"version": repr(version)}
        raise PydanticCustomError("version", "{version} is not a version such as 0.2.0 or 0.2.0-beta1", context)
    return version


type Version = Annotated[StrictStr, AfterValidator(_dotted)]


class _Access(Checked):
    enabled: StrictBool = False


class _Models(_Access):
    llm: StrictBool = False
    text_embedding: StrictBool = False
    rerank: StrictBool = False
    tts: StrictBool = False
    speech2text: StrictBool = False
    moderation: StrictBool = False


class _Storage(_Access):
    size: Annotated[StrictInt, Field(ge=1024, le=1024**3)]
    """Checked even if the storage is not enabled."""


class _Permission(Checked):
    tool: _Access | None = None
    model: _Models | None = None
    node: _Access | None = None
    endpoint: _Access | None = None
    app: _Access | None = None
    storage: _Storage | None = None


class _Resource(Checked):
    memory: Annotated[StrictInt, Field(gt=0)]
    permission: _Permission | None = None


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
    version: Annotated[Version, AfterValidator(_pep440)]
    type: Literal["plugin"]
    author: Annotated[StrictStr, Field(pattern=r"^[a-z0-9_-]{1,64}$"), AfterValidator(_not_a_uuid)]
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


def check_manifest(manifest: JsonObject) -> None:
    check(_Manifest, manifest, "manifest_declaration")


def manifest_faults(manifest: JsonObject) -> list[Fault]:
    return faults(_Manifest, manifest)


# What the marketplace asks of a manifest beyond the daemon.

HOSTS = ("github.com", "gitlab.com", "bitbucket.org", "gitee.com", "codeberg.org", "git.sr.ht", "sr.ht")
TAKEN = re.compile("langgenius|dify")


def marketplace_problems(manifest: JsonObject) -> Iterator[Problem]:
    repo, contact = manifest.get("repo"), manifest.get("contact")
    if not isinstance(repo, str) or not re.match(rf"https://(?:www\.)?(?:{'|'.join(map(re.escape, HOSTS))})/\S", repo):
        yield _problem("repo", f"give the address of the source code, on one of {', '.join(HOSTS)}")
    if not isinstance(contact, str) or not re.fullmatch(r"[^@\s]+@[^@\s]+\.[A-Za-z]+", contact):
        yield _problem("contact", "give an e-mail address")
    if not isinstance(manifest.get("privacy"), str) or not manifest["privacy"]:
        yield _problem("privacy", "name the privacy policy, such as PRIVACY.md")
    author = manifest.get("author")
    if isinstance(author, str) and (taken := TAKEN.search(author)):
        yield _problem("author", f"{author!r} contains {taken[0]!r}, which stands for Dify's own plugins")


def _problem(key: str, sentence: str) -> Problem:
    return Problem("marketplace", "manifest.yaml", key, sentence, level="marketplace")


# The daemon's rules for a strategy provider that registers for remote debugging, rule by rule.
#
# A zip install does not look as closely, so that such faults ship and break in Dify later.

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


# The daemon's rules for a tool provider with its tools, rule by rule.

type Name = Annotated[StrictStr, Field(pattern=r"^[a-zA-Z0-9_-]+$")]


class _ToolParameter(Parameter):
    human_description: I18n
    type: ToolParameterType
    form: ToolParameterForm
    llm_description: StrictStr = Field(default="", validate_default=True)
    multiple: StrictBool = False
    default: Any = None
    input_schema: dict[str, Any] | None = None
    show_on: Any = None

    @field_validator("llm_description")
    @classmethod
    def _told(cls, description: str, checked: ValidationInfo) -> str:
        """Dify shows no model a parameter for files."""
        is_told = checked.data.get("form") == "llm" and checked.data.get("type") not in FILES
        if is_told and not description.strip():
            raise PydanticCustomError("llm_description", "it is missing: the model reads the parameter's name alone")
        return description

    @field_validator("default")
    @classmethod
    def _fits(cls, default: object, checked: ValidationInfo) -> object:
        """Dify takes the default of nothing that the model fills."""
        return fitting(default, checked) if checked.data.get("form") == "form" else default

    @field_validator("input_schema")
    @classmethod
    def _lost(cls, schema: dict[str, Any] | None) -> None:
        if schema is not None:
            raise PydanticCustomError("input_schema", "Dify drops it: describe the shape in llm_description")


class _ToolIdentity(Checked):
    author: Text
    name: Name
    label: I18n


class _Description(Checked):
    human: I18n
    llm: Annotated[StrictStr, Field(min_length=1)]


class _Tool(Checked):
    identity: _ToolIdentity
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
    options: tuple[Option, ...] = ()
    help: I18n | None = None
    placeholder: I18n | None = None
    url: StrictStr | None = None


class _OAuth(Checked):
    client_schema: tuple[_Credential, ...] = ()
    credentials_schema: tuple[_Credential, ...] = ()


class _ToolProviderIdentity(Checked):
    author: Text
    name: Name
    label: I18n
    description: I18n
    icon: Text
    icon_dark: StrictStr = ""
    tags: tuple[Tag, ...] = ()


class _ToolProvider(Checked):
    identity: _ToolProviderIdentity
    credentials_for_provider: dict[str, _Credential] = Field(default_factory=dict)
    credentials_schema: Any = None
    oauth_schema: _OAuth | None = None
    tools: Annotated[list[_Tool], Field(min_length=1)]
    extra: Any = None


def tool_provider_faults(provider: JsonObject) -> list[Fault]:
    return faults(_ToolProvider, provider)
