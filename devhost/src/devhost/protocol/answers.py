"""Answers as the daemon decodes them: chunks of a model's answer, messages of a tool or of a strategy.

In: what Dify's API or a plugin sent. Out: what the daemon passes on, or `GoDecodeError` with its message. A chunk that
does not decode is dropped, and the plugin is not told; a strategy's message that does not decode fails its run.
"""

from devhost.golang import TEXT, Content, Field, Json, Price, Raw, Record, Scalar, Several, Table, from_json
from devhost.protocol.wire import MESSAGE_TYPES, JsonObject

_COUNT = Scalar("int", nullable=True)

_PART = Record(
    "model_entities.PromptMessageContent",
    tuple(
        Field(key, key, TEXT)
        for key in (
            *("type", "base64_data", "url", "data", "encode_format"),
            *("format", "mime_type", "detail", "filename"),
        )
    ),
)
_FUNCTION = Record("", (Field("name", "Name", TEXT), Field("arguments", "Arguments", TEXT)))
_TOOL_CALL = Record(
    "", (Field("id", "ID", TEXT), Field("type", "Type", TEXT), Field("function", "Function", _FUNCTION))
)
_MESSAGE = Record(
    "",
    (
        Field("role", "Role", Scalar("string", "model_entities.PromptMessageRole"), required=True),
        Field("content", "Content", Content(_PART), required=True),
        Field("name", "Name", TEXT),
        Field("tool_calls", "ToolCalls", Several(_TOOL_CALL)),
        Field("tool_call_id", "ToolCallId", TEXT),
        Field("opaque_body", "OpaqueBody", Raw(), omitted_when_empty=True),
    ),
)
_USAGE = Record(
    "model_entities.LLMUsage",
    (
        Field("prompt_tokens", "PromptTokens", _COUNT, required=True),
        Field("prompt_unit_price", "PromptUnitPrice", Price()),
        Field("prompt_price_unit", "PromptPriceUnit", Price()),
        Field("prompt_price", "PromptPrice", Price()),
        Field("completion_tokens", "CompletionTokens", _COUNT, required=True),
        Field("completion_unit_price", "CompletionUnitPrice", Price()),
        Field("completion_price_unit", "CompletionPriceUnit", Price()),
        Field("completion_price", "CompletionPrice", Price()),
        Field("total_tokens", "TotalTokens", _COUNT, required=True),
        Field("total_price", "TotalPrice", Price()),
        Field("currency", "Currency", Scalar("string", nullable=True), required=True),
        Field("latency", "Latency", Scalar("float64", nullable=True), required=True),
    ),
    nullable=True,
)
_DELTA = Record(
    "model_entities.LLMResultChunkDelta",
    (
        Field("index", "Index", _COUNT, required=True),
        Field("message", "Message", _MESSAGE),
        Field("usage", "Usage", _USAGE),
        Field("finish_reason", "FinishReason", Scalar("string", nullable=True)),
    ),
)
_CHUNK_FIELDS = (
    Field("model", "Model", TEXT, required=True),
    Field("system_fingerprint", "SystemFingerprint", TEXT),
    Field("delta", "Delta", _DELTA),
)
_LLM_CHUNK = Record("model_entities.LLMResultChunk", _CHUNK_FIELDS)
_STRUCTURED_CHUNK = Record(
    "model_entities.LLMResultChunkWithStructuredOutput", (*_CHUNK_FIELDS, Field("structured_output", "", Table()))
)


def _message(name: str, within: str) -> Record:
    kind = Scalar("string", "tool_entities.ToolResponseChunkType")
    tag = "is_valid_tool_response_chunk_type"
    return Record(
        name,
        (
            Field("type", "Type", kind, required=True, tag=tag, allowed=MESSAGE_TYPES, within=within),
            Field("message", "Message", Table(), within=within),
            Field("meta", "Meta", Table(), within=within),
        ),
    )


_TOOL_MESSAGE = _message("tool_entities.ToolResponseChunk", "")
_AGENT_MESSAGE = _message("agent_entities.AgentStrategyResponseChunk", "ToolResponseChunk")


def llm_chunk(said: Json) -> JsonObject:
    """The prompt is not passed on: the list is always empty."""
    return {**from_json(_LLM_CHUNK, said), "prompt_messages": []}


def structured_chunk(said: Json) -> JsonObject:
    return {**from_json(_STRUCTURED_CHUNK, said), "prompt_messages": []}


def tool_message(said: Json) -> JsonObject:
    message: JsonObject = from_json(_TOOL_MESSAGE, said)
    return message


def agent_message(said: Json) -> JsonObject:
    message: JsonObject = from_json(_AGENT_MESSAGE, said)
    return message
