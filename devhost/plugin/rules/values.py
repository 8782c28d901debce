"""Parameters, options and sources, which strategies and tools share, and what a default has to fit."""

from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from devhost.plugin.rules.fields import Checked, I18n, Text

type Basic = StrictStr | StrictBool | StrictInt | StrictFloat
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


class Option(Checked):
    value: Text
    label: I18n
    icon: StrictStr = ""
    show_on: Any = None


class _AutoGenerate(Checked):
    type: Literal["prompt_instruction"]


class _Template(Checked):
    enabled: StrictBool = False


class Parameter(Checked):
    """What a parameter has in both; `type` is defined by each."""

    name: Text
    label: I18n
    type: str
    auto_generate: _AutoGenerate | None = None
    template: _Template | None = None
    scope: Annotated[StrictStr, Field(max_length=1024)] | None = None
    required: StrictBool = False
    min: StrictInt | StrictFloat | None = None
    max: StrictInt | StrictFloat | None = None
    precision: StrictInt | None = None
    options: tuple[Option, ...] = ()

    @field_validator("scope")
    @classmethod
    def _fits_type(cls, scope: str | None, checked: ValidationInfo) -> str | None:
        """The daemon is content with one part that it knows."""
        kind = checked.data.get("type")
        if not scope or kind is None:
            return scope
        if kind not in SCOPES:
            raise PydanticCustomError("scope", "a parameter of type {kind} has no scope", {"kind": kind})
        if not SCOPES[kind].intersection(part.strip() for part in scope.split("&")):
            context = {"scope": repr(scope), "known": ", ".join(sorted(SCOPES[kind]))}
            raise PydanticCustomError("scope", "{scope} has none of {known} (joined by &)", context)
        return scope


def fitting[T](default: T, checked: ValidationInfo) -> T:
    """One with which Dify builds the parameter; type and options of the parameter are checked before."""
    kind, options = checked.data.get("type"), checked.data.get("options")
    if default is None or default == "" or checked.data.get("multiple"):
        return default
    if kind == "select" and options is not None:
        values = [option.value for option in options]
        if default not in values:
            quoted = ": write it in quotes" if str(default) in values else ""
            context = {"default": repr(default), "values": ", ".join(values) or "none", "quoted": quoted}
            raise PydanticCustomError("default_fits", "{default} is not among the options: {values}{quoted}", context)
    if kind == "number" and isinstance(default, str) and not _reads_as_number(default):
        raise PydanticCustomError("default_fits", "{default} is not a number", {"default": repr(default)})
    return default


def _reads_as_number(text: str) -> bool:
    """As in Dify's cast: 1e3 without a dot is not one."""
    try:
        float(text) if "." in text else int(text)
    except ValueError:
        return False
    return True
