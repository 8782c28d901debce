"""The structs into which the daemon decodes every request and answer, before it validates and encodes them again.

Keys that a struct does not have are dropped, and missing ones are filled in. mapstructure decodes requests, and
encoding/json decodes answers. Each has its own error messages, which were recorded
(devhost/tests/fixtures/dify/daemon-golden.jsonl).
"""

import json
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import partial

from devhost.errors import InvocationError, RefusedCallError
from devhost.golang import Json, marshalled, number, remarshalled, well_formed
from devhost.protocol.wire import MESSAGE_TYPES, JsonObject

# The kind of a field is a Go type, `[kind]` for a slice, a struct, or a choice of strings. `raw` is json.RawMessage,
# `price` is a decimal, `content` is a string or a list of parts, and `emptied` is a list that is not passed on. `*`
# before a Go type means a pointer, whose zero value is null. `!` before a key means that the daemon requires a value,
# and `?` means that null is not written.

type Kind = str | list[Kind] | Choice | Struct
type Keys = dict[str, Kind]


@dataclass(frozen=True)
class Choice:
    """A string that the validator `tag` restricts to certain values."""

    tag: str
    allowed: frozenset[str]


@dataclass(frozen=True)
class StructField:
    """A field of a struct."""

    name: str
    """The name as Go spells it."""
    kind: Kind
    within: str
    """The embedded struct that has the field, for error messages."""
    required: bool
    unwritten: bool
    """Whether the field is omitted if it is null."""


class Struct:
    """A Go struct of the daemon."""

    def __init__(self, name: str, *parts: Keys | tuple[str, Keys], nullable: bool = False) -> None:
        """A part is the struct's own fields, or an embedded struct's name and fields. A `nullable` struct is a pointer.

        `name` includes the Go package if an error message about the whole value includes it.
        """
        self.name = name
        self.nullable = nullable
        self.short_name = name.rpartition(".")[2]
        named = [part if isinstance(part, tuple) else ("", part) for part in parts]
        self.fields: dict[str, StructField] = {}
        for within, keys in named:
            for marked, kind in keys.items():
                key = marked.lstrip("!?")
                go_name = "".join(part.capitalize() for part in key.split("_"))
                self.fields[key] = StructField(go_name, kind, within, marked.startswith("!"), marked.startswith("?"))


_FUNCTION = Struct("", {"name": "string", "arguments": "string"})
_CALL = Struct("", {"id": "string", "type": "string", "function": _FUNCTION})
_OF_ANY_MESSAGE: Keys = {"name": "string", "tool_calls": [_CALL], "tool_call_id": "string", "?opaque_body": "raw"}
_PROMPT = Struct("", {"role": "string", "content": "any"}, _OF_ANY_MESSAGE)
_TOOL = Struct("", {"!name": "string", "description": "string", "parameters": "map"})
_LLM_PARTS: tuple[tuple[str, Keys], ...] = (
    ("BaseRequestInvokeModel", {"!provider": "string", "!model": "string"}),
    (
        "InvokeLLMSchema",
        {
            "!mode": "string",
            "completion_params": "map",
            "prompt_messages": [_PROMPT],
            "tools": [_TOOL],
            "?tool_choice": Struct("", {"mode": "string", "?name": "*string"}, nullable=True),
            "stop": ["string"],
            "stream": "bool",
        },
    ),
)
LLM = Struct("InvokeLLMRequest", *_LLM_PARTS)
STRUCTURED = Struct("InvokeLLMWithStructuredOutputRequest", *_LLM_PARTS, {"!structured_output_schema": "map"})
TOOL = Struct(
    "InvokeToolRequest",
    {"!tool_type": Choice("tool_type", frozenset({"builtin", "workflow", "api", "mcp"}))},
    (
        "InvokeToolSchema",
        {"credential_id": "string", "!provider": "string", "!tool": "string", "tool_parameters": "map"},
    ),
)
SUMMARY = Struct("InvokeSummaryRequest", ("InvokeSummarySchema", {"!text": "string", "!instruction": "string"}))
STORAGE = Struct(
    "InvokeStorageRequest",
    {"!opt": Choice("storage_opt", frozenset({"get", "set", "del", "exist"})), "!key": "string", "value": "string"},
)
UPLOAD = Struct("UploadFileRequest", {"!filename": "string", "!mimetype": "string"})

_TEXTS = ("type", "base64_data", "url", "data", "encode_format", "format", "mime_type", "detail", "filename")
_PART = Struct("PromptMessageContent", dict.fromkeys(_TEXTS, "string"))
_MESSAGE = Struct("", {"!role": "string", "!content": "content"}, _OF_ANY_MESSAGE)
_USAGE = Struct(
    "LLMUsage",
    {"!prompt_tokens": "*int", "prompt_unit_price": "price", "prompt_price_unit": "price", "prompt_price": "price"},
    {"!completion_tokens": "*int", "completion_unit_price": "price", "completion_price_unit": "price"},
    {"completion_price": "price", "!total_tokens": "*int", "total_price": "price"},
    {"!currency": "*string", "!latency": "*float64"},
    nullable=True,
)
_DELTA = Struct(
    "LLMResultChunkDelta", {"!index": "*int", "message": _MESSAGE, "usage": _USAGE, "finish_reason": "*string"}
)
_CHUNK: Keys = {"!model": "string", "system_fingerprint": "string", "delta": _DELTA, "prompt_messages": "emptied"}
LLM_CHUNK = Struct("LLMResultChunk", _CHUNK)
STRUCTURED_CHUNK = Struct("LLMResultChunkWithStructuredOutput", _CHUNK, {"structured_output": "map"})
_TYPE = Choice("is_valid_tool_response_chunk_type", MESSAGE_TYPES)
_MESSAGE_KEYS: Keys = {"!type": _TYPE, "message": "map", "meta": "map"}
TOOL_MESSAGE = Struct("tool_entities.ToolResponseChunk", _MESSAGE_KEYS)
_AGENT_MESSAGE = Struct("agent_entities.AgentStrategyResponseChunk", ("ToolResponseChunk", _MESSAGE_KEYS))


def to_the_api(struct: Struct, request: JsonObject, *, keeps_raw: bool = False) -> JsonObject:
    """Converts a backwards call to the body that Dify's API gets. Raises RefusedCallError with the daemon's message.

    `keeps_raw` imitates a daemon that passes on any `raw` field.
    """
    try:
        return _Pass(is_map=True, keeps_raw=keeps_raw).over(struct, remarshalled(request))
    except GoDecodeError as error:
        raise RefusedCallError(f"unmarshal backwards invoke request failed: {error}") from error


def _streamed(struct: Struct, said: Json) -> JsonObject:
    """Converts a part of a plugin's answer as the daemon does. Raises InvocationError with the daemon's message."""
    try:
        return from_json(struct, said)
    except GoDecodeError as error:
        raise InvocationError("unmarshal_error", f"unmarshal json failed: {error}") from error


model_chunk = partial(_streamed, LLM_CHUNK)
tool_message = partial(_streamed, TOOL_MESSAGE)
agent_message = partial(_streamed, _AGENT_MESSAGE)


# Decodes, validates and encodes in one pass, in the order of a struct's fields. Null becomes the zero value.


class GoDecodeError(Exception):
    """An error from a decoder or the validator, in its own words."""


def from_json(struct: Struct, value: Json) -> JsonObject:
    return _Pass(is_map=False, keeps_raw=True).over(struct, value)


_ZERO: dict[str, Json] = {"string": "", "bool": False, "int": 0, "price": "0"}
"""The zero values of kinds. Kinds that are not listed have the zero value null."""
_PYTHON: dict[str, tuple[type, ...]] = {"string": (str,), "bool": (bool,), "int": (int,), "float64": (int, float)}


type _Place = str | tuple["_Place", *tuple[str | int, ...]]
"""Where a value is: the place of what contains it, with names or a position. Only an error needs it as a text."""


def _text_of(place: _Place) -> str:
    if isinstance(place, str):
        return place
    container, *steps = place
    names = [_text_of(container)]
    for step in steps:
        if isinstance(step, int):
            names[-1] += f"[{step}]"
        else:
            names.append(step)
    return ".".join(filter(None, names))


class _Pass:
    """Decodes, validates and encodes one value."""

    def __init__(self, *, is_map: bool, keeps_raw: bool) -> None:
        self._is_map = is_map
        self._keeps_raw = keeps_raw
        self._faults: list[str] = []
        """Errors from mapstructure without weak typing, or from encoding/json."""
        self._violations: list[str] = []
        """Errors from the validator, which runs only if the decoder found no errors."""

    def over(self, struct: Struct, value: Json) -> JsonObject:
        """Returns the encoded value, or raises GoDecodeError.

        mapstructure collects all errors and sorts them. encoding/json stops at the first one.
        """
        written: JsonObject = self._read(struct, value, "", "", struct.short_name)
        if self._faults and self._is_map:
            listed = "\n".join(f"* {fault}" for fault in sorted(self._faults))
            raise GoDecodeError(f"error decoding map: {len(self._faults)} error(s) decoding:\n\n{listed}")
        if self._faults:
            raise GoDecodeError(self._faults[0])
        if self._violations:
            raise GoDecodeError(("error validating struct: " if self._is_map else "") + "\n".join(self._violations))
        return written

    def _read(  # noqa: C901, PLR0912 - one case per kind, each a line or two
        self, kind: Kind, value: Json, path: _Place, owner: str, where: _Place
    ) -> Json:
        """Decodes a value. `path` locates the value in decoder errors, and `where` locates it in validator errors.

        `owner` is the name of the struct that contains the value.
        """
        match kind:
            case "string" | "*string" if isinstance(value, str):  # what most fields hold
                return well_formed(value)
            case Struct() if isinstance(value, dict) or (value is None and not kind.nullable):
                return self._struct(kind, value, path, owner, where)
            case "content":
                return self._content(value)
            case "emptied":
                return []
            case Choice() | str() if value is None:
                return _ZERO.get("string" if isinstance(kind, Choice) else kind)
            case _ if value is None:
                return None
            case [inner] if isinstance(value, list):
                return [
                    self._read(inner, item, (path, position) if self._is_map else path, owner, (where, position))
                    for position, item in enumerate(value)
                ]
            case "raw" if self._keeps_raw:
                return value
            case "raw" if isinstance(value, list):  # a list of bytes, which no plugin sends
                odd = {position: item for position, item in enumerate(value) if not isinstance(item, int)}
                self._faults += [_in_a_map("uint8", item, (path, position)) for position, item in odd.items()]
                return None
            case "any" | "map" if kind == "any" or isinstance(value, dict):
                return remarshalled(value)
            case "price" if (price := _price(value)) is not None:
                return price
            case Choice() if isinstance(value, str):
                return well_formed(value)
            case str() if (scalar := kind.lstrip("*")) in _PYTHON and _fits(scalar, value):
                if scalar == "float64":
                    return number(value)
                return value
        self._faults.append(_in_a_map(kind, value, path) if self._is_map else _in_json(kind, value, path, owner))
        return None

    def _struct(self, struct: Struct, value: JsonObject | None, path: _Place, owner: str, where: _Place) -> JsonObject:
        """Decodes a struct. If `value` is None, all fields are treated as missing."""
        written: JsonObject = {}
        for key, field in struct.fields.items():
            here = (where, field.within, field.name)
            inner = (path, "" if self._is_map else field.within, key)
            item = None
            if value is not None or field.kind != "content":
                item = self._read(field.kind, (value or {}).get(key), inner, struct.short_name or owner, here)
            tag = ""
            if field.required and (item is None or (item == "" and field.kind != "content")):
                tag = "required"
            elif isinstance(field.kind, Choice) and item not in field.kind.allowed:
                tag = field.kind.tag
            if tag:
                self._violations.append(
                    f"Key: '{_text_of(here)}' Error:Field validation for '{field.name}' failed on the '{tag}' tag"
                )
            if item is not None or not field.unwritten:
                written[key] = item
        return written

    def _content(self, content: Json) -> Json:
        """Decodes the content of a message, for which the daemon has a separate decoder."""
        if isinstance(content, str):
            return well_formed(content)
        inner = _Pass(is_map=False, keeps_raw=True)
        parts = inner._read([_PART], content, "", "", "")
        if content is None or inner._faults:
            must = "must be a string or a list of contents"
            if content is None:
                must = "is required"
            self._faults.append(f"content field {must}")
        return parts


def _fits(kind: str, value: Json) -> bool:
    """Returns whether a value that is not null fits a scalar type. Unlike in Python, a bool is not a number."""
    return isinstance(value, _PYTHON[kind]) and (kind == "bool") == isinstance(value, bool)


def _price(value: Json) -> str | None:
    """Returns a decimal as Go writes it, a string without an exponent, or None if the value is not a decimal."""
    try:
        price = Decimal(value if isinstance(value, str) else json.dumps(value))
    except InvalidOperation:
        return None
    plain = f"{price:f}"
    if "." in plain:
        return plain.rstrip("0").rstrip(".") or "0"
    return plain


def _in_json(kind: Kind, value: Json, path: _Place, owner: str) -> str:
    """Formats an error as encoding/json does, with the struct and the path of the field in the struct."""
    got = {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(value), "number")
    wanted = _go_type(kind)
    if got == "number" and wanted == "int":
        got = f"number {json.dumps(value)}"
    place = "Go value"
    if path:
        place = f"Go struct field {owner}.{_text_of(path)}"
    return f"json: cannot unmarshal {got} into {place} of type {wanted}"


def _in_a_map(kind: Kind, value: Json, path: _Place) -> str:
    """Formats an error as mapstructure does, with the full path of the field."""
    got = {dict: "map", list: "slice", str: "string", bool: "bool"}.get(type(value), "float64")
    place = _text_of(path)
    match kind:
        case Struct() | "map":
            return f"'{place}' expected a map, got '{got}'"
        case [_] | "raw":
            return f"'{place}': source data must be an array or slice, got {got}"
    got = {"map": "map[string]interface {}", "slice": "[]interface {}"}.get(got, got)
    return f"'{place}' expected type '{_go_type(kind)}', got unconvertible type '{got}', value: '{_shown(value)}'"


def _shown(value: Json) -> str:
    """Formats a value roughly as Go's `%v` does, for example `map[a:1]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_shown(value[key])}' for key in sorted(value))}]"
    if isinstance(value, str):
        return value
    return marshalled(value)


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
