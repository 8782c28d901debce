"""The daemon's rules for a tool provider with its tools, rule by rule.

In: the provider with its tools and credentials, as JSON without nulls. Out: its faults.
"""

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, StrictBool, StrictStr, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from devhost.plugin.rules.fields import Checked, Fault, I18n, Tag, Text, faults
from devhost.plugin.rules.values import Basic, Option, Parameter, fitting
from devhost.protocol.wire import JsonObject

type CredentialType = Literal[
    "secret-input", "text-input", "select", "boolean", "model-selector", "app-selector", "array[tools]"
]
type _PlainType = Literal["string", "number", "boolean", "checkbox", "select", "dynamic-select", "secret-input", "any"]
type _FileType = Literal["file", "files", "system-files"]
type _OtherType = Literal["object", "array", "date", "date-range", "model-selector", "app-selector"]
FILES = frozenset(get_args(_FileType.__value__))
type ToolParameterType = Literal[_PlainType, _FileType, _OtherType]
type ToolParameterForm = Literal["schema", "form", "llm"]
type Name = Annotated[StrictStr, Field(pattern=r"^[a-zA-Z0-9_-]+$")]


class _Parameter(Parameter):
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
    parameters: tuple[_Parameter, ...] = ()
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


class _ProviderIdentity(Checked):
    author: Text
    name: Name
    label: I18n
    description: I18n
    icon: Text
    icon_dark: StrictStr = ""
    tags: tuple[Tag, ...] = ()


class _ToolProvider(Checked):
    identity: _ProviderIdentity
    credentials_for_provider: dict[str, _Credential] = Field(default_factory=dict)
    credentials_schema: Any = None
    oauth_schema: _OAuth | None = None
    tools: Annotated[list[_Tool], Field(min_length=1)]
    extra: Any = None


def tool_provider_faults(provider: JsonObject) -> list[Fault]:
    return faults(_ToolProvider, provider)
