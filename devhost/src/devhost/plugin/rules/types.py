"""The types that credentials and parameters of tools may have. Every command reads them, and few the rules."""

from typing import Literal, get_args

type CredentialType = Literal[
    "secret-input", "text-input", "select", "boolean", "model-selector", "app-selector", "array[tools]"
]
type _PlainType = Literal["string", "number", "boolean", "checkbox", "select", "dynamic-select", "secret-input", "any"]
type _FileType = Literal["file", "files", "system-files"]
type _OtherType = Literal["object", "array", "date", "date-range", "model-selector", "app-selector"]
FILES = frozenset(get_args(_FileType.__value__))
type ToolParameterType = Literal[_PlainType, _FileType, _OtherType]
type ToolParameterForm = Literal["schema", "form", "llm"]
