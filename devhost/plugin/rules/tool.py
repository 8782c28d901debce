"""The daemon's rules for a tool provider with its tools, rule by rule.

In: the provider with its tools and credentials, as JSON without nulls. Out: its faults.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from devhost.plugin.rules.fields import Checked, Fault, I18n, Tag, Text, faults
from devhost.plugin.rules.values import Basic, Option, fitting, json_schema
from devhost.protocol.wire import JsonObject

type CredentialType = Literal[
    "secret-input", "text-input", "select", "boolean", "model-selector", "app-selector", "array[tools]"
]
type _PlainType = Literal["string", "number", "boolean", "checkbox", "select", "dynamic-select", "secret-input", "any"]
type _FileType = Literal["file", "files", "system-files"]
type _OtherType = Literal["object", "array", "date", "date-range", "model-selector", "app-selector"]
type ToolParameterType = Literal[_PlainType, _FileType, _OtherType]
type ToolParameterForm = Literal["schema", "form", "llm"]
type Name = Annotated[StrictStr, Field(pattern=r"^[a-zA-Z0-9_-]+$")]


class _Parameter(Checked):
    name: Text
    label: I18n
    human_description: I18n
    type: ToolParameterType
    form: ToolParameterForm
    llm_description: StrictStr = ""
    required: StrictBool = False
    min: StrictInt | StrictFloat | None = None
    max: StrictInt | StrictFloat | None = None
    precision: StrictInt | None = None
    multiple: Any = False
    """Not a field of the daemon's."""
    options: tuple[Option, ...] = ()
    default: Annotated[Basic | None, AfterValidator(fitting)] = None


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
    output_schema: Annotated[dict[str, Any] | None, AfterValidator(json_schema)] = None
    has_runtime_parameters: StrictBool = False


class _Credential(Checked):
    type: CredentialType
    label: I18n
    required: StrictBool = False
    default: Basic | None = None
    options: tuple[Option, ...] = ()
    help: I18n | None = None
    placeholder: I18n | None = None
    url: StrictStr | None = None


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
    tools: Annotated[list[_Tool], Field(min_length=1)]


def tool_provider_faults(provider: JsonObject) -> list[Fault]:
    return faults(_ToolProvider, provider)
