"""What the YAML files of a plugin may declare, key by key."""

import datetime as dt
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, model_validator

type CredentialType = Literal[
    "secret-input", "text-input", "select", "boolean", "model-selector", "app-selector", "array[tools]"
]
type _PlainType = Literal["string", "number", "boolean", "checkbox", "select", "dynamic-select", "secret-input", "any"]
type _FileType = Literal["file", "files", "system-files"]
type _OtherType = Literal["object", "array", "date", "date-range", "model-selector", "app-selector"]
FILES = frozenset(get_args(_FileType.__value__))
"""The types of parameters that hold files."""
type ToolParameterType = Literal[_PlainType, _FileType, _OtherType]
type ToolParameterForm = Literal["schema", "form", "llm"]


def as_sent(value: Any) -> Any:  # noqa: ANN401 - YAML of any shape
    """As the SDK writes it as JSON: without nulls, a time as a text, an option's value as a text."""
    match value:
        case dict():
            sent = {str(key): as_sent(item) for key, item in value.items() if item is not None}
            if set(sent) <= {"value", "label", "icon", "show_on"} and isinstance(sent.get("value"), bool | int | float):
                sent["value"] = str(sent["value"])
            return sent
        case list():
            return [as_sent(item) for item in value]
        case dt.date():  # also one with a time
            return value.isoformat()
        case _:
            return value


# What all declared values have in common, and a text in the languages of Dify.


class Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


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
    """YAML reads an unquoted number or yes as another type; Dify turns it into a text."""
    label: I18n


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


class ToolParameter(Parameter):
    type: ToolParameterType
    form: ToolParameterForm
    human_description: I18n
