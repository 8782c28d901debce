"""A plugin's backwards calls as the daemon decodes them and sends them on to Dify's API.

In: the `request` of a call. Out: the body that the API gets, or `RefusedCallError` in the daemon's words. What the
daemon does not know is stripped; what is missing is filled in.
"""

from devhost.errors import RefusedCallError
from devhost.golang import (
    TEXT,
    Field,
    Free,
    GoDecodeError,
    NumberRangeError,
    Raw,
    Record,
    Scalar,
    Several,
    Table,
    from_map,
)
from devhost.protocol.wire import JsonObject

TOOL_TYPES = frozenset({"builtin", "workflow", "api", "mcp"})
STORAGE_OPERATIONS = frozenset({"get", "set", "del", "exist"})

_MODEL = (
    Field("provider", "Provider", TEXT, required=True, within="BaseRequestInvokeModel"),
    Field("model", "Model", TEXT, required=True, within="BaseRequestInvokeModel"),
)
_FUNCTION = Record("", (Field("name", "Name", TEXT), Field("arguments", "Arguments", TEXT)))
_TOOL_CALL = Record(
    "", (Field("id", "ID", TEXT), Field("type", "Type", TEXT), Field("function", "Function", _FUNCTION))
)
_PROMPT_MESSAGE = Record(
    "",
    (
        Field("role", "Role", TEXT),
        Field("content", "Content", Free()),
        Field("name", "Name", TEXT),
        Field("tool_calls", "ToolCalls", Several(_TOOL_CALL)),
        Field("tool_call_id", "ToolCallId", TEXT),
        Field("opaque_body", "OpaqueBody", Raw(), omitted_when_empty=True),
    ),
)
_TOOL = Record(
    "",
    (
        Field("name", "Name", TEXT, required=True),
        Field("description", "Description", TEXT),
        Field("parameters", "Parameters", Table()),
    ),
)
_CHOICE = Record(
    "",
    (Field("mode", "Mode", TEXT), Field("name", "Name", Scalar("string", nullable=True), omitted_when_empty=True)),
    nullable=True,
)
_LLM_SCHEMA = (
    Field("mode", "Mode", TEXT, required=True, within="InvokeLLMSchema"),
    Field("completion_params", "CompletionParams", Table(), within="InvokeLLMSchema"),
    Field("prompt_messages", "PromptMessages", Several(_PROMPT_MESSAGE), within="InvokeLLMSchema"),
    Field("tools", "Tools", Several(_TOOL), within="InvokeLLMSchema"),
    Field("tool_choice", "ToolChoice", _CHOICE, within="InvokeLLMSchema", omitted_when_empty=True),
    Field("stop", "Stop", Several(TEXT), within="InvokeLLMSchema"),
    Field("stream", "Stream", Scalar("bool"), within="InvokeLLMSchema"),
)
LLM = Record("InvokeLLMRequest", (*_MODEL, *_LLM_SCHEMA))
STRUCTURED = Record(
    "InvokeLLMWithStructuredOutputRequest",
    (*_MODEL, *_LLM_SCHEMA, Field("structured_output_schema", "StructuredOutputSchema", Table(), required=True)),
)
TOOL = Record(
    "InvokeToolRequest",
    (
        Field("tool_type", "ToolType", TEXT, required=True, tag="tool_type", allowed=TOOL_TYPES),
        Field("credential_id", "CredentialId", TEXT, within="InvokeToolSchema"),
        Field("provider", "Provider", TEXT, required=True, within="InvokeToolSchema"),
        Field("tool", "Tool", TEXT, required=True, within="InvokeToolSchema"),
        Field("tool_parameters", "ToolParameters", Table(), within="InvokeToolSchema"),
    ),
)
SUMMARY = Record(
    "InvokeSummaryRequest",
    tuple(
        Field(key, key.capitalize(), TEXT, required=True, within="InvokeSummarySchema")
        for key in ("text", "instruction")
    ),
)
STORAGE = Record(
    "InvokeStorageRequest",
    (
        Field("opt", "Opt", TEXT, required=True, tag="storage_opt", allowed=STORAGE_OPERATIONS),
        Field("key", "Key", TEXT, required=True),
        Field("value", "Value", TEXT),
    ),
)
UPLOAD = Record(
    "UploadFileRequest",
    (Field("filename", "Filename", TEXT, required=True), Field("mimetype", "MimeType", TEXT, required=True)),
)


def to_the_api(record: Record, request: JsonObject) -> JsonObject:
    try:
        body: JsonObject = from_map(record, request)
    except (GoDecodeError, NumberRangeError) as error:
        raise RefusedCallError(f"unmarshal backwards invoke request failed: {error}") from error
    return body
