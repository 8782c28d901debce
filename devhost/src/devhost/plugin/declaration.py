"""A plugin's folder as data: manifest.yaml → provider YAML → strategy and tool YAMLs.

Only YAML is read, never the plugin's code. Errors name the file and the key. Keys that devhost does not need are
ignored, as Dify ignores unknown keys.
"""

import datetime as dt
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AliasPath, BaseModel, ConfigDict, Field, field_validator, model_validator

from devhost.errors import DeclarationError, ParameterError
from devhost.text import load_yaml, real_path, worded

type CredentialType = Literal[
    "secret-input", "text-input", "select", "boolean", "model-selector", "app-selector", "array[tools]"
]
type _PlainType = Literal["string", "number", "boolean", "checkbox", "select", "dynamic-select", "secret-input", "any"]
type _FileType = Literal["file", "files", "system-files"]
type _OtherType = Literal["object", "array", "date", "date-range", "model-selector", "app-selector"]
FILES = frozenset(get_args(_FileType.__value__))
"""The types of parameters that hold files."""
type ToolParameterType = Literal[_PlainType, _FileType, _OtherType]


def as_sent(value: Any) -> Any:  # noqa: ANN401 - YAML of any shape
    """Returns the value as the SDK sends it: without nulls, with times and the values of options as texts."""
    match value:
        case dict():
            sent = {str(key): as_sent(item) for key, item in value.items() if item is not None}
            if set(sent) <= {"value", "label", "icon", "show_on"} and isinstance(sent.get("value"), bool | int | float):
                sent["value"] = str(sent["value"])
            return sent
        case list():
            return [as_sent(item) for item in value]
        case dt.date():  # includes datetime
            return value.isoformat()
        case _:
            return value


class DeclarationModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


def _inside(*keys: str) -> Any:  # noqa: ANN401 - a field
    """Returns a field that is read from this path in the YAML and defaults to an empty tuple."""
    return Field((), validation_alias=AliasPath(*keys))


class I18n(DeclarationModel):
    """A text in several languages. A missing language is filled with English, as in Dify."""

    en_US: str  # noqa: N815 - the key in the YAML
    zh_Hans: str = ""  # noqa: N815
    ja_JP: str = ""  # noqa: N815
    pt_BR: str = ""  # noqa: N815

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, value: object) -> object:
        if isinstance(value, dict) and isinstance(english := value.get("en_US"), str):
            return {**dict.fromkeys(cls.model_fields, english), **{key: text for key, text in value.items() if text}}
        return value


# manifest.yaml: the plugin's identity, its permissions, and the paths of its other files.


class _Access(DeclarationModel):
    enabled: bool = False


class _ModelAccess(_Access):
    llm: bool = False
    text_embedding: bool = False
    rerank: bool = False
    tts: bool = False
    speech2text: bool = False
    moderation: bool = False


class _StorageAccess(_Access):
    size: Annotated[int, Field(ge=1024, le=1024**3)] | None = None
    """The storage size in bytes."""


class Permission(DeclarationModel):
    """The backwards calls that the plugin may make. The daemon refuses all others."""

    tool: _Access = _Access()
    model: _ModelAccess = _ModelAccess()
    node: _Access = _Access()
    endpoint: _Access = _Access()
    app: _Access = _Access()
    storage: _StorageAccess = _StorageAccess()

    def allows(self, access: str) -> bool:
        """Returns whether an access is allowed.

        `access` is a key of resource.permission or of its model. An empty key is always allowed.
        """
        if access in _ModelAccess.model_fields:
            return self.model.enabled and bool(getattr(self.model, access))
        return not access or bool(getattr(self, access).enabled)


class Plugins(DeclarationModel):
    agent_strategies: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


class Manifest(DeclarationModel):
    author: str
    name: str
    version: str
    permission: Permission = Field(Permission(), validation_alias=AliasPath("resource", "permission"))
    plugins: Plugins
    meta_version: str = Field(validation_alias=AliasPath("meta", "version"))
    entrypoint: str = Field(validation_alias=AliasPath("meta", "runner", "entrypoint"))


class CredentialOption(DeclarationModel):
    value: str
    """The value as a text. YAML reads an unquoted number or yes as another type, which Dify converts to a text."""


class Option(CredentialOption):
    label: I18n


class Parameter(DeclarationModel):
    """A parameter of a strategy or a tool. Only tools have `form` and the descriptions."""

    name: str
    label: I18n
    type: str
    form: str | None = None
    required: bool = False
    multiple: bool = False
    """Whether the value of a select is a list of options."""
    options: tuple[Option, ...] = ()
    default: Any = None
    min: int | float | None = None
    max: int | float | None = None
    precision: int | None = None
    scope: str | None = None
    auto_generate: dict[str, Any] | None = None
    template: dict[str, Any] | None = None
    placeholder: I18n | None = None
    help: I18n | None = None
    human_description: I18n | None = None
    llm_description: str | None = None


class ToolParameter(Parameter):
    type: ToolParameterType
    form: Literal["schema", "form", "llm"]
    human_description: I18n


class CredentialField(DeclarationModel):
    type: CredentialType
    required: bool = False
    default: Any = None
    options: tuple[CredentialOption, ...] | None = None

    @property
    def is_secret(self) -> bool:
        return self.type == "secret-input"


class _ShownOn(DeclarationModel):
    variable: str
    value: str


class ModelCredential(CredentialField):
    variable: str
    show_on: tuple[_ShownOn, ...] = ()

    @property
    def is_for_language_models(self) -> bool:
        return all(each.value == "llm" for each in self.show_on if each.variable == "__model_type")

    @field_validator("type", mode="before")
    @classmethod
    def _as_of_tools(cls, kind: object) -> object:
        return {"radio": "select", "switch": "boolean"}.get(str(kind), kind)


class LanguageModel(DeclarationModel):
    model: str
    model_type: str
    features: tuple[str, ...] = ()
    model_properties: dict[str, Any] = Field(default_factory=dict)
    deprecated: bool = False


class ModelProvider(DeclarationModel):
    provider: str
    label: I18n
    supported_model_types: tuple[str, ...] = ()
    configurate_methods: tuple[Literal["predefined-model", "customizable-model"], ...] = ()
    of_provider: tuple[ModelCredential, ...] = _inside("provider_credential_schema", "credential_form_schemas")
    """The credential form for the provider's own models."""
    of_model: tuple[ModelCredential, ...] = _inside("model_credential_schema", "credential_form_schemas")
    """The credential form for each model that a person adds."""
    predefined: tuple[str, ...] = _inside("models", "llm", "predefined")
    """Glob patterns for the YAML files of language models."""

    @property
    def takes_any_model(self) -> bool:
        """Whether a person can add any language model."""
        return "customizable-model" in self.configurate_methods and "llm" in self.supported_model_types

    def credentials(self, values: Mapping[str, object], *, of_provider: bool) -> Mapping[str, ModelCredential]:
        """Returns the fields of a form that Dify shows for a language model with these values.

        `of_provider` selects the form of the provider; otherwise the form of an added model is used.
        """
        shown = dict[str, ModelCredential]()
        known = {"__model_type": "llm", **values}
        for field in self.of_provider if of_provider else self.of_model:
            if all(known.get(each.variable) == each.value for each in field.show_on):
                shown[field.variable] = field
                known.setdefault(field.variable, field.default)
        return shown

    @property
    def every_credential(self) -> Mapping[str, ModelCredential]:
        """The fields of both forms that apply to language models."""
        return {each.variable: each for each in (*self.of_model, *self.of_provider) if each.is_for_language_models}


class Identity(DeclarationModel):
    author: str
    name: str
    label: I18n
    icon: str = ""


class ToolDescription(DeclarationModel):
    human: I18n
    llm: str


class PartDeclaration(DeclarationModel):
    identity: Identity
    extra: Any = None  # names the Python file


class Strategy(PartDeclaration):
    description: I18n
    parameters: tuple[Parameter, ...] = ()
    output_schema: dict[str, Any] | None = None


class ToolDeclaration(PartDeclaration):
    description: ToolDescription
    parameters: tuple[ToolParameter, ...] = ()
    output_schema: dict[str, Any] | None = None
    has_runtime_parameters: bool = False


class StrategyProvider(PartDeclaration):
    strategies: tuple[Strategy, ...]


class OAuthCredential(CredentialField):
    name: str


class ToolProvider(PartDeclaration):
    tools: tuple[ToolDeclaration, ...]
    credentials_for_provider: dict[str, CredentialField] = Field(default_factory=dict)
    oauth_credentials: tuple[OAuthCredential, ...] = _inside("oauth_schema", "credentials_schema")

    @property
    def credentials(self) -> Mapping[str, CredentialField]:
        """The credentials of the provider's form or, without a form, those that Dify stores after an OAuth login."""
        return self.credentials_for_provider or {each.name: each for each in self.oauth_credentials}

    @property
    def credential_type(self) -> str:
        """The credential type that Dify sends.

        A provider without credentials has the type `api-key`, because SDKs from 0.4.4 to 0.5.1 refuse `unauthorized`.
        """
        if self.credentials and not self.credentials_for_provider:
            return "oauth2"
        return "api-key"


@dataclass(frozen=True)
class ProvidedTool:
    """A tool with its provider."""

    provider: ToolProvider
    provider_id: str
    """Dify's id of the provider: author/plugin/provider."""
    declared: ToolDeclaration

    @property
    def name(self) -> str:
        return self.declared.identity.name

    @property
    def names(self) -> tuple[str, str, str]:
        """The names by which people can refer to the tool: its name, provider/name, and the full id with the name."""
        return self.name, f"{self.provider.identity.name}/{self.name}", f"{self.provider_id}/{self.name}"


class PluginDeclaration(DeclarationModel):
    directory: Path
    manifest: Manifest
    strategy_providers: tuple[StrategyProvider, ...]
    tool_providers: tuple[ToolProvider, ...]
    model_providers: tuple[ModelProvider, ...] = ()
    is_unpacked: bool = False
    """Whether the folder was unpacked from a package and is removed when the command ends."""

    @classmethod
    def read(cls, directory: Path, *, is_unpacked: bool = False) -> Self:
        directory = plugin_in(real_path(directory))
        manifest = _read(directory, MANIFEST, Manifest)
        return cls(
            directory=directory,
            manifest=manifest,
            strategy_providers=tuple(
                _read(directory, path, StrategyProvider, ("strategies", Strategy))
                for path in manifest.plugins.agent_strategies
            ),
            tool_providers=tuple(
                _read(directory, path, ToolProvider, ("tools", ToolDeclaration)) for path in manifest.plugins.tools
            ),
            model_providers=tuple(_read(directory, path, ModelProvider) for path in manifest.plugins.models),
            is_unpacked=is_unpacked,
        )

    @cached_property
    def strategies(self) -> Mapping[str, tuple[StrategyProvider, Strategy]]:
        return {
            strategy.identity.name: (provider, strategy)
            for provider in self.strategy_providers
            for strategy in provider.strategies
        }

    @property
    def tools(self) -> tuple[ProvidedTool, ...]:
        return tuple(
            ProvidedTool(provider, self.provider_id(provider), tool)
            for provider in self.tool_providers
            for tool in provider.tools
        )

    def provider_id(self, provider: StrategyProvider | ToolProvider | ModelProvider) -> str:
        """Returns Dify's id of a provider: author/plugin/provider."""
        name = provider.provider if isinstance(provider, ModelProvider) else provider.identity.name
        return f"{self.manifest.author}/{self.manifest.name}/{name}"

    def language_models(self, provider: ModelProvider) -> Mapping[str, LanguageModel]:
        """Returns the language models that the provider's YAML files predefine, by name."""
        files = {file for pattern in provider.predefined for file in self.directory.glob(pattern)}
        paths = sorted(str(file.relative_to(self.directory)) for file in files if file.name != "_position.yaml")
        read = [_read(self.directory, path, LanguageModel) for path in paths]
        return {model.model: model for model in read}


def _read[T: BaseModel](
    directory: Path, path: str, kind: type[T], children: tuple[str, type[BaseModel]] | None = None
) -> T:
    """Parses one YAML file as a `kind`.

    `children` names a key with paths. The contents of these files replace the paths.
    """
    file = directory / path
    data: dict[str, Any] = as_sent(load_yaml(file))
    if children is not None:
        key, child = children
        paths = data.get(key)
        if not isinstance(paths, list) or not all(isinstance(item, str) for item in paths):
            raise DeclarationError(f"{file}: {key} must be a list of paths to YAML files")
        data = {**data, key: [_read(directory, item, child) for item in paths]}
    with worded(lambda why: DeclarationError(f"{file}: {why}")):
        return kind.model_validate(data)


# The plugin that a person works on is in the named folder, or in the nearest folder above the current one.

MANIFEST = "manifest.yaml"
FOLDER = "DEVHOST_PLUGIN"
"""The environment variable that gives the plugin's folder instead of the current folder."""


def plugin_in(folder: Path) -> Path:
    """Returns the folder. Raises `DeclarationError` if it has no manifest."""
    if not (folder / MANIFEST).is_file():
        raise DeclarationError(f"{folder} is not a plugin: {MANIFEST} is missing")
    return folder


def nearest_strategy_plugin() -> Path:
    return nearest_plugin("agent_strategies")


def nearest_plugin(kind: str = "") -> Path:
    """Returns the nearest folder whose manifest declares plugins of this kind.

    The search starts in $DEVHOST_PLUGIN, or else in the current folder, and continues in the folders above it. Files
    that only have the manifest's name are skipped. Raises `ParameterError` if there is no such folder.
    """
    start = Path(os.environ.get(FOLDER, "").strip() or ".").resolve()
    invalid = ""
    for folder in (start, *start.parents):
        if (folder / MANIFEST).is_file():
            try:
                plugins = load_yaml(folder / MANIFEST).get("plugins")
            except DeclarationError as error:
                plugins = None
                invalid = f"{invalid}; {error}"
            if isinstance(plugins, dict) and (not kind or plugins.get(kind)):
                return folder
    lacks, named = (f" with {kind}", "--plugin DIR") if kind else ("", "as in devhost check DIR")
    raise ParameterError(
        f"no {'strategy ' if kind else ''}plugin was found: neither {start} nor a folder above it has a "
        f"{MANIFEST}{lacks}. Name the plugin's folder ({named}), set {FOLDER}, or run devhost in it{invalid}"
    )
