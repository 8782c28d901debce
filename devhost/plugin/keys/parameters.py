"""The parameters of strategies and tools."""

from typing import Any

from pydantic import field_validator

from devhost.plugin.keys.base import Declared, I18n
from devhost.plugin.rules.tool import ToolParameterForm, ToolParameterType


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
