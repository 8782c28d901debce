"""A plugin directory as data: manifest.yaml → provider YAML → strategy and tool YAMLs.

Reads YAML only, never the plugin's code. Errors name the file and the key. Keys that devhost does not
need are ignored, as Dify ignores keys that it does not know.
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from devhost.errors import DeclarationError
from devhost.plugin.credentials import CredentialField
from devhost.plugin.rules.tool import ToolParameterForm, ToolParameterType
from devhost.text.yaml_file import describe, load_yaml


class _Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class I18n(_Declared):
    """Dify fills a language that is missing with English."""

    en_US: str  # noqa: N815 - the key in the YAML
    zh_Hans: str = ""  # noqa: N815
    ja_JP: str = ""  # noqa: N815
    pt_BR: str = ""  # noqa: N815

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, value: object) -> object:
        if isinstance(value, dict):
            return {language: value.get(language) or value.get("en_US") for language in cls.model_fields}
        return value


class Option(_Declared):
    value: str
    label: I18n

    @field_validator("value", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        """YAML reads an unquoted number or yes as another type; Dify turns it into a text."""
        return value if value is None else str(value)


class Parameter(_Declared):
    """A parameter of a strategy or of a tool; `form` and the descriptions are a tool's only."""

    name: str
    label: I18n
    type: str
    required: bool = False
    multiple: bool = False
    """Of a select: its value is a list of options."""
    default: Any = None
    min: int | float | None = None
    max: int | float | None = None
    precision: int | None = None
    options: tuple[Option, ...] = ()
    scope: str | None = None
    auto_generate: dict[str, Any] | None = None
    template: dict[str, Any] | None = None
    placeholder: I18n | None = None
    human_description: I18n | None = None
    form: str | None = None
    llm_description: str | None = None
    input_schema: dict[str, Any] | None = None

    @field_validator("options", mode="before")
    @classmethod
    def _no_options(cls, value: object) -> object:
        return () if value is None else value

    @field_validator("required", "multiple", mode="before")
    @classmethod
    def _no(cls, value: object) -> object:
        return False if value is None else value


class ToolParameter(Parameter):
    type: ToolParameterType
    form: ToolParameterForm
    human_description: I18n


class Identity(_Declared):
    author: str
    name: str
    label: I18n
    icon: str = ""


class ToolDescription(_Declared):
    human: I18n
    llm: str


class Strategy(_Declared):
    identity: Identity
    description: I18n
    parameters: tuple[Parameter, ...] = ()
    output_schema: dict[str, Any] | None = None


class Tool(_Declared):
    identity: Identity
    description: ToolDescription
    parameters: tuple[ToolParameter, ...] = ()
    output_schema: dict[str, Any] | None = None
    has_runtime_parameters: bool = False

    @field_validator("parameters", mode="before")
    @classmethod
    def _no_parameters(cls, value: object) -> object:
        return () if value is None else value


class StrategyProvider(_Declared):
    identity: Identity
    strategies: tuple[Strategy, ...]


class ToolProvider(_Declared):
    identity: Identity
    tools: tuple[Tool, ...]
    credentials_for_provider: dict[str, CredentialField] = Field(default_factory=dict)

    @field_validator("credentials_for_provider", mode="before")
    @classmethod
    def _no_credentials(cls, value: object) -> object:
        return {} if value is None else value


class _Access(_Declared):
    enabled: bool = False


class _ModelAccess(_Access):
    llm: bool = False
    text_embedding: bool = False
    rerank: bool = False
    tts: bool = False
    speech2text: bool = False
    moderation: bool = False


class _StorageAccess(_Access):
    size: int | None = None
    """In bytes."""


class Permission(_Declared):
    """What the plugin may ask the host for; the daemon refuses the rest."""

    tool: _Access = _Access()
    model: _ModelAccess = _ModelAccess()
    node: _Access = _Access()
    app: _Access = _Access()
    storage: _StorageAccess = _StorageAccess()

    def allows(self, access: str) -> bool:
        """`access` is a key of resource.permission or of its model; the empty one is always allowed."""
        if access in _ModelAccess.model_fields:
            return self.model.enabled and bool(getattr(self.model, access))
        return not access or bool(getattr(self, access).enabled)


class _Resource(_Declared):
    permission: Permission = Permission()


class _Runner(_Declared):
    entrypoint: str


class _Meta(_Declared):
    version: str
    runner: _Runner


class _Plugins(_Declared):
    agent_strategies: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class Manifest(_Declared):
    author: str
    name: str
    version: str
    resource: _Resource = _Resource()
    plugins: _Plugins
    meta: _Meta


class PluginDeclaration(_Declared):
    directory: Path
    manifest: Manifest
    strategy_providers: tuple[StrategyProvider, ...]
    tool_providers: tuple[ToolProvider, ...]

    @classmethod
    def read(cls, directory: Path) -> Self:
        directory = directory.resolve()
        if not (directory / "manifest.yaml").is_file():
            raise DeclarationError(f"{directory} is not a plugin: manifest.yaml is missing")
        manifest = _read(directory, "manifest.yaml", Manifest)
        return cls(
            directory=directory,
            manifest=manifest,
            strategy_providers=tuple(
                _read(directory, path, StrategyProvider, ("strategies", Strategy))
                for path in manifest.plugins.agent_strategies
            ),
            tool_providers=tuple(
                _read(directory, path, ToolProvider, ("tools", Tool)) for path in manifest.plugins.tools
            ),
        )

    @cached_property
    def strategies(self) -> Mapping[str, tuple[StrategyProvider, Strategy]]:
        return {
            strategy.identity.name: (provider, strategy)
            for provider in self.strategy_providers
            for strategy in provider.strategies
        }

    def provider_id(self, provider: ToolProvider) -> str:
        """How Dify names a plugin's tool provider: author/plugin/provider."""
        return f"{self.manifest.author}/{self.manifest.name}/{provider.identity.name}"


def _read[T: BaseModel](
    directory: Path, path: str, kind: type[T], children: tuple[str, type[BaseModel]] | None = None
) -> T:
    """One YAML file as a `kind`; `children` names the key whose paths are replaced by the files they lead to."""
    file = directory / path
    data = load_yaml(file)
    if children is not None:
        key, child = children
        paths = data.get(key)
        if not isinstance(paths, list) or not all(isinstance(item, str) for item in paths):
            raise DeclarationError(f"{file}: {key} must be a list of paths to YAML files")
        data = {**data, key: [_read(directory, item, child) for item in paths]}
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise DeclarationError(f"{file}: {describe(error)}") from error
