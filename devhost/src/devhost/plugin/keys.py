"""What the YAML files of a plugin may declare, key by key."""

from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from devhost.plugin.rules.types import ToolParameterForm, ToolParameterType

# What all declared values have in common, and a text in the languages of Dify.


class Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class I18n(Declared):
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


# manifest.yaml: what a plugin is, what it may ask for, and the paths of its other files.


class _Access(Declared):
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


class Permission(Declared):
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


class _Resource(Declared):
    permission: Permission = Permission()


class _Runner(Declared):
    entrypoint: str


class _Meta(Declared):
    version: str
    runner: _Runner


class _Plugins(Declared):
    agent_strategies: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class Manifest(Declared):
    author: str
    name: str
    version: str
    resource: _Resource = _Resource()
    plugins: _Plugins
    meta: _Meta


# The parameters of strategies and tools.


class Option(Declared):
    value: str
    label: I18n

    @field_validator("value", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        """YAML reads an unquoted number or yes as another type; Dify turns it into a text."""
        return value if value is None else str(value)


class Parameter(Declared):
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
    help: I18n | None = None
    human_description: I18n | None = None
    form: str | None = None
    llm_description: str | None = None

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
