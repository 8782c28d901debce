"""The structs of the daemon: it decodes every request and every answer into one, checks it, and encodes it again.

What a struct does not have is dropped, and what is missing is filled in. Requests are read by mapstructure, answers by
encoding/json: each refuses in its own words, which are recorded (devhost/tests/fixtures/dify/daemon-golden.jsonl).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from devhost.errors import InvocationError, RefusedCallError, RunFailure, RunTimeoutError
from devhost.golang import Json, NumberRangeError, marshalled, number, remarshalled, shown, well_formed
from devhost.protocol.wire import MESSAGE_TYPES, JsonObject

# The structs. A kind of field is a Go type, `[kind]` for a slice, or a struct. Before a Go type, `!` means that the
# daemon requires a value, `?` that an empty field is not written, and `*` a pointer, whose zero value is null.
# `raw` is json.RawMessage, `price` a decimal, and `content` a text or a list of parts.

type Kind = str | list[Kind] | Choice | Struct
type Keys = dict[str, Kind]


@dataclass(frozen=True)
class Choice:
    """A required text, which the validator `tag` restricts."""

    tag: str
    allowed: frozenset[str]


@dataclass(frozen=True)
class Field:
    kind: Kind
    within: str
    """The embedded struct that has it, for messages."""
    required: bool = False
    unwritten: bool = False
    """If it is empty."""


class Struct:
    def __init__(
        self, name: str, *parts: Keys | tuple[str, Keys], nullable: bool = False, omitted: bool = False
    ) -> None:
        """A part is an embedded struct's fields with its name, or fields of its own.

        A `nullable` one is a pointer, and an `omitted` one is not written if it is null.
        `name`: with its Go package, where a message about the whole value has it.
        """
        self.name, self.nullable, self.omitted = name, nullable or omitted, omitted
        self.short_name = name.rpartition(".")[2]
        named = [part if isinstance(part, tuple) else ("", part) for part in parts]
        self.fields = {key: _field(kind, within) for within, keys in named for key, kind in keys.items()}


def _field(kind: Kind, within: str) -> Field:
    if isinstance(kind, str):
        return Field(kind.lstrip("!?"), within, kind.startswith("!"), kind.startswith("?"))
    return Field(kind, within, isinstance(kind, Choice), isinstance(kind, Struct) and kind.omitted)


_FUNCTION = Struct("", {"name": "string", "arguments": "string"})
_CALL = Struct("", {"id": "string", "type": "string", "function": _FUNCTION})
_PROMPT = Struct(
    "",
    {"role": "string", "content": "any", "name": "string", "tool_calls": [_CALL]},
    {"tool_call_id": "string", "opaque_body": "?raw"},
)
_TOOL = Struct("", {"name": "!string", "description": "string", "parameters": "map"})
_LLM_PARTS: tuple[tuple[str, Keys], ...] = (
    ("BaseRequestInvokeModel", {"provider": "!string", "model": "!string"}),
    (
        "InvokeLLMSchema",
        {
            "mode": "!string",
            "completion_params": "map",
            "prompt_messages": [_PROMPT],
            "tools": [_TOOL],
            "tool_choice": Struct("", {"mode": "string", "name": "?*string"}, omitted=True),
            "stop": ["string"],
            "stream": "bool",
        },
    ),
)
LLM = Struct("InvokeLLMRequest", *_LLM_PARTS)
STRUCTURED = Struct("InvokeLLMWithStructuredOutputRequest", *_LLM_PARTS, {"structured_output_schema": "!map"})
TOOL = Struct(
    "InvokeToolRequest",
    {"tool_type": Choice("tool_type", frozenset({"builtin", "workflow", "api", "mcp"}))},
    (
        "InvokeToolSchema",
        {"credential_id": "string", "provider": "!string", "tool": "!string", "tool_parameters": "map"},
    ),
)
SUMMARY = Struct("InvokeSummaryRequest", ("InvokeSummarySchema", {"text": "!string", "instruction": "!string"}))
STORAGE = Struct(
    "InvokeStorageRequest",
    {"opt": Choice("storage_opt", frozenset({"get", "set", "del", "exist"})), "key": "!string", "value": "string"},
)
UPLOAD = Struct("UploadFileRequest", {"filename": "!string", "mimetype": "!string"})

_TEXTS = ("type", "base64_data", "url", "data", "encode_format", "format", "mime_type", "detail", "filename")
_PART = Struct("PromptMessageContent", dict.fromkeys(_TEXTS, "string"))
_MESSAGE = Struct(
    "",
    {"role": "!string", "content": "!content", "name": "string", "tool_calls": [_CALL]},
    {"tool_call_id": "string", "opaque_body": "?raw"},
)
_USAGE = Struct(
    "LLMUsage",
    {"prompt_tokens": "!*int", "prompt_unit_price": "price", "prompt_price_unit": "price", "prompt_price": "price"},
    {"completion_tokens": "!*int", "completion_unit_price": "price", "completion_price_unit": "price"},
    {"completion_price": "price", "total_tokens": "!*int", "total_price": "price"},
    {"currency": "!*string", "latency": "!*float64"},
    nullable=True,
)
_DELTA = Struct(
    "LLMResultChunkDelta", {"index": "!*int", "message": _MESSAGE, "usage": _USAGE, "finish_reason": "*string"}
)
_CHUNK: Keys = {"model": "!string", "system_fingerprint": "string", "delta": _DELTA}
_LLM_CHUNK = Struct("LLMResultChunk", _CHUNK)
_STRUCTURED_CHUNK = Struct("LLMResultChunkWithStructuredOutput", _CHUNK, {"structured_output": "map"})
_MESSAGE_KEYS: Keys = {
    "type": Choice("is_valid_tool_response_chunk_type", MESSAGE_TYPES),
    "message": "map",
    "meta": "map",
}
TOOL_MESSAGE = Struct("tool_entities.ToolResponseChunk", _MESSAGE_KEYS)


def to_the_api(struct: Struct, request: JsonObject) -> JsonObject:
    """The body that Dify's API gets of a backwards call, or RefusedCallError in the daemon's words."""
    try:
        return from_map(struct, request)
    except (GoDecodeError, NumberRangeError) as error:
        raise RefusedCallError(f"unmarshal backwards invoke request failed: {error}") from error


def llm_chunk(said: Json) -> JsonObject:
    """The prompt is not passed on: the list is always empty."""
    return {**from_json(_LLM_CHUNK, said), "prompt_messages": []}


def structured_chunk(said: Json) -> JsonObject:
    return {**from_json(_STRUCTURED_CHUNK, said), "prompt_messages": []}


def tool_message(said: Json) -> JsonObject:
    """As the daemon passes it on to Dify, or InvocationError in its words."""
    return _streamed(TOOL_MESSAGE, said)


def agent_message(said: Json) -> JsonObject:
    """As above, of a strategy."""
    return _streamed(Struct("agent_entities.AgentStrategyResponseChunk", ("ToolResponseChunk", _MESSAGE_KEYS)), said)


def _streamed(struct: Struct, said: Json) -> JsonObject:
    try:
        return from_json(struct, said)
    except (GoDecodeError, NumberRangeError) as error:
        raise InvocationError("unmarshal_error", f"unmarshal json failed: {error}") from error


# What the Agent node reads of a run from the daemon: an envelope for each message or failure.

FAILED = -500


def passed_on(message: JsonObject) -> JsonObject:
    return {"code": 0, "message": "success", "data": message}


def failed(failure: RunFailure) -> JsonObject:
    """The daemon's error is JSON in a text, and what the plugin raised is once more JSON in a text of that."""
    error_type, message = "PluginDaemonInternalServerError", str(failure)
    match failure:
        case InvocationError():
            error_type, message = "PluginInvokeError", marshalled(remarshalled(failure.said))
        case RunTimeoutError():
            message = "killed by timeout"
    said = {"message": message, "error_type": error_type, "args": None}
    return {"code": FAILED, "message": marshalled(said), "data": None}


# Reading, checking and writing. Null is the zero value.


class GoDecodeError(Exception):
    """What a decoder or the validator says."""


def from_json(struct: Struct, value: Json) -> JsonObject:
    """The first fault in the document counts, a decoder's before a validator's."""
    reading = _FromJson()
    decoded = reading.read(struct, value, "", "")
    if reading.faults:
        raise GoDecodeError(reading.faults[0])
    if broken := list(_violations(struct, decoded, struct.short_name)):
        raise GoDecodeError("\n".join(broken))
    written: JsonObject = _written(struct, decoded)
    return written


def from_map(struct: Struct, value: JsonObject) -> JsonObject:
    """Mapstructure collects all faults and sorts them; the validator runs if there are none."""
    reading = _FromMap()
    decoded = reading.read(struct, remarshalled(value), "", "")
    if reading.faults:
        listed = "\n".join(f"* {fault}" for fault in sorted(reading.faults))
        raise GoDecodeError(f"error decoding map: {len(reading.faults)} error(s) decoding:\n\n{listed}")
    if broken := list(_violations(struct, decoded, struct.short_name)):
        raise GoDecodeError("error validating struct: " + "\n".join(broken))
    written: JsonObject = _written(struct, decoded)
    return written


def _zero(kind: Kind) -> Json:
    match kind:
        case Struct():
            return None if kind.nullable else {key: _zero(field.kind) for key, field in kind.fields.items()}
        case Choice():
            return ""
        case str():
            return {"string": "", "bool": False, "int": 0, "price": "0"}.get(kind)
    return None


_GO_NAMES = {"mimetype": "MimeType"}
"""Names of fields that do not follow from their keys."""


def _violations(struct: Struct, value: Json, path: str) -> Iterator[str]:
    """The validator's sentences about a decoded struct, in the order of its fields."""
    for key, field in struct.fields.items():
        name = _GO_NAMES.get(key) or "".join(part.capitalize() for part in key.split("_"))
        where = ".".join(filter(None, [path, field.within, name]))
        item, kind, tag = value[key], field.kind, ""
        if field.required and (item is None or (item == "" and kind != "content")):
            tag = "required"
        elif isinstance(kind, Choice) and item not in kind.allowed:
            tag = kind.tag
        if tag:
            yield f"Key: '{where}' Error:Field validation for '{name}' failed on the '{tag}' tag"
        elif isinstance(kind, Struct) and item is not None:
            yield from _violations(kind, item, where)
        elif isinstance(kind, list) and isinstance(inner := kind[0], Struct):
            for position, each in enumerate(item or ()):
                yield from _violations(inner, each, f"{where}[{position}]")


def _written(kind: Kind, value: Json) -> Json:
    match kind:
        case Struct() if value is not None:
            fields = kind.fields.items()
            shown = {key: field for key, field in fields if not (field.unwritten and value[key] is None)}
            return {key: _written(field.kind, value[key]) for key, field in shown.items()}
        case [inner] if value is not None:
            return [_written(inner, item) for item in value]
    return value


_PYTHON: dict[str, tuple[type, ...]] = {"string": (str,), "bool": (bool,), "int": (int,), "float64": (int, float)}
_LONG = 2**63


def _fits(kind: str, value: Json) -> bool:
    """Whether a value that is not null fits a scalar; to Python, true is a number."""
    is_one = isinstance(value, _PYTHON[kind]) and (kind == "bool") == isinstance(value, bool)
    return is_one and not (kind == "int" and not -_LONG <= value < _LONG)


class _FromJson:
    """encoding/json: a fault names the struct that is read, and the way to the field in it."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def read(self, kind: Kind, value: Json, path: str, owner: str) -> Json:
        if value is None:
            return _zero(kind)
        match kind:
            case Struct() if isinstance(value, dict):
                return self._struct(kind, value, path, owner)
            case [inner] if isinstance(value, list):
                return [self.read(inner, item, self.at(path, position), owner) for position, item in enumerate(value)]
            case "raw":
                return self.raw(value, path)
            case "any":
                return self._free(value)
            case "map" if isinstance(value, dict):
                return self._free(value)
            case "price" if isinstance(value, str | int | float) and not isinstance(value, bool):
                return self._price(value)
            case Choice() if isinstance(value, str):
                return well_formed(value)
            case str() if (scalar := kind.lstrip("*")) in _PYTHON and _fits(scalar, value):
                return well_formed(value) if scalar == "string" else number(value) if scalar == "float64" else value
        self.misfit(kind, value, path, owner)
        return _zero(kind)

    def _struct(self, struct: Struct, value: JsonObject, path: str, owner: str) -> JsonObject:
        """The daemon decodes the content of a message by itself, and last."""
        decoded = {key: _zero(field.kind) for key, field in struct.fields.items()}
        for key, item in value.items():
            field = struct.fields.get(key)
            if field is not None and field.kind != "content":
                inner = self.inside(path, field.within, key)
                decoded[key] = self.read(field.kind, item, inner, struct.short_name or owner)
        for key, field in struct.fields.items():
            if field.kind == "content":
                decoded[key] = self._content(value.get(key))
        return decoded

    def _content(self, content: Json) -> Json:
        if isinstance(content, str):
            return well_formed(content)
        inner = _FromJson()
        parts = inner.read([_PART], content, "", "")
        if content is None or inner.faults:
            must = "is required" if content is None else "must be a string or a list of contents"
            self.faults.append(f"content field {must}")
        return parts

    def _free(self, value: Json) -> Json:
        try:
            return remarshalled(value)
        except NumberRangeError as error:
            self.faults.append(str(error))
            return None

    def _price(self, value: str | float) -> str:
        """Go writes a decimal as a text without an exponent."""
        text = value if isinstance(value, str) else json.dumps(value)
        try:
            price = Decimal(text)
        except InvalidOperation:
            price = Decimal("NaN")
        if not price.is_finite():
            self.faults.append(f"error decoding string '{text}': can't convert {text} to decimal")
            return "0"
        plain = f"{price:f}"
        return plain.rstrip("0").rstrip(".") or "0" if "." in plain else plain

    def raw(self, value: Json, path: str) -> Json:  # noqa: ARG002 - the other decoder names it
        return value

    def at(self, path: str, position: int) -> str:  # noqa: ARG002 - as above
        return path

    def inside(self, path: str, within: str, key: str) -> str:
        return ".".join(filter(None, [path, within, key]))

    def misfit(self, kind: Kind, value: Json, path: str, owner: str) -> None:
        words = {dict: "object", list: "array", str: "string", bool: "bool"}
        got = words.get(type(value), "number")
        wanted = _go_type(kind)
        if got == "number" and wanted == "int":
            got = f"number {json.dumps(value)}"
        place = f"Go struct field {owner}.{path}" if path else "Go value"
        self.faults.append(f"json: cannot unmarshal {got} into {place} of type {wanted}")


class _FromMap(_FromJson):
    """mapstructure, without weak typing: a fault names the field by its whole path."""

    def raw(self, value: Json, path: str) -> Json:
        """A list of bytes, which are a JSON text; no bytes count as null."""
        if not isinstance(value, list):
            self.misfit("raw", value, path, "")
            return None
        odd = [position for position, item in enumerate(value) if not _fits("float64", item)]
        for position in odd:
            self.misfit("uint8", value[position], f"{path}[{position}]", "")
        try:
            return json.loads(bytes(int(item) for item in value)) if value and not odd else None
        except ValueError as error:
            self.faults.append(f"'{path}' is not JSON: {error}")
            return None

    def at(self, path: str, position: int) -> str:
        return f"{path}[{position}]"

    def inside(self, path: str, within: str, key: str) -> str:  # noqa: ARG002 - the other decoder names it
        return f"{path}.{key}" if path else key

    def misfit(self, kind: Kind, value: Json, path: str, owner: str) -> None:  # noqa: ARG002 - as above
        kinds: dict[type, str] = {dict: "map", list: "slice", str: "string", bool: "bool"}
        got = kinds.get(type(value), "float64")
        match kind:
            case Struct() | "map":
                self.faults.append(f"'{path}' expected a map, got '{got}'")
            case [_] | "raw":
                self.faults.append(f"'{path}': source data must be an array or slice, got {got}")
            case _:
                types = {"map": "map[string]interface {}", "slice": "[]interface {}"}
                has = f"got unconvertible type '{types.get(got, got)}', value: '{shown(value)}'"
                self.faults.append(f"'{path}' expected type '{_go_type(kind)}', {has}")


def _go_type(kind: Kind) -> str:
    match kind:
        case Struct():
            return kind.name
        case Choice():
            return "string"
        case [inner]:
            return f"[]{_go_type(inner)}"
    names = {"map": "map[string]interface {}", "any": "interface {}", "price": "decimal.Decimal"}
    return names.get(str(kind), str(kind).lstrip("*"))
