"""JSON as Go's encoding/json reads and writes it, for values of any shape.

The words for values and numbers are those of Go's `%v`.
"""

import decimal
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

type Json = Any
"""What `json.loads` gives: dict, list, str, int, float, bool or None."""

EXPONENT_FROM, EXPONENT_BELOW = 1e21, 1e-6
"""Go writes an exponent outside these."""
LEAST_PLAIN_EXPONENT, PLAIN_DIGITS = -4, 6
"""`%v` writes an exponent outside these."""
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class NumberRangeError(ValueError):
    """A number that no float64 holds: Go refuses the whole value."""


def well_formed(text: str) -> str:
    """Two halves of a surrogate pair are one character, and half of one is U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def number(value: float) -> int | float:
    """1.0 → 1, 9007199254740993 → 9007199254740992; NumberRangeError for what no float64 holds."""
    try:
        read = float(value)
    except OverflowError:
        read = math.inf
    if not math.isfinite(read):
        raise NumberRangeError(f"json: cannot unmarshal number {literal(value)} into Go value of type float64")
    return int(read) if read.is_integer() and abs(read) < EXPONENT_FROM else read


def remarshalled(value: Json) -> Json:
    """The value after it was decoded into Go's `any` and encoded again."""
    match value:
        case bool() | None:
            return value
        case str():
            return well_formed(value)
        case int() | float():
            return number(value)
        case dict():
            # Go sorts by the keys' UTF-8 bytes, which is the order of their characters.
            return {key: remarshalled(item) for key, item in sorted(_well_formed_keys(value))}
        case _:
            return [remarshalled(item) for item in value]


def _well_formed_keys(value: dict[str, Json]) -> Iterable[tuple[str, Json]]:
    """Of two keys that become one, the later counts. The values are not compared: keys differ."""
    return {well_formed(key): item for key, item in value.items()}.items()


def marshalled(value: Json) -> str:
    """The text that Go writes: no spaces, `<`, `>`, `&`, U+2028 and U+2029 escaped, its own way to write a number.

    Keys stay in the order they have, as fields of a struct do.
    """
    match value:
        case dict():
            return f"{{{','.join(f'{marshalled(key)}:{marshalled(item)}' for key, item in value.items())}}}"
        case list() | tuple():
            return f"[{','.join(map(marshalled, value))}]"
        case str():
            written = json.dumps(well_formed(value), ensure_ascii=False)
            return "".join(_ESCAPES.get(character, character) for character in written)
        case bool() | None:
            return json.dumps(value)
        case _:
            return _written_number(value)


def _written_number(value: float) -> str:
    read = float(value)
    size = abs(read)
    if size and (size < EXPONENT_BELOW or size >= EXPONENT_FROM):
        return _with_exponent(read).replace("e-0", "e-")
    if read.is_integer():
        return str(int(read)) if math.copysign(1, read) > 0 or read else "-0"
    return format(Decimal(repr(read)), "f")


def _with_exponent(value: float) -> str:
    """The shortest digits that read back as the number, and an exponent of two digits or more."""
    return next(written for precision in range(17) if float(written := f"{value:.{precision}e}") == value)


def literal(value: float) -> str:
    """A number as Python's JSON writes it."""
    return json.dumps(value)


def kind_of(value: Json) -> str:
    """encoding/json's word for a value that does not fit."""
    match value:
        case dict():
            return "object"
        case list():
            return "array"
        case str():
            return "string"
        case bool():
            return "bool"
        case _:
            return "number"


def shown(value: Json) -> str:
    """`%v` of a decoded value: `map[a:1 b:[x <nil>]]`."""
    match value:
        case dict():
            return f"map[{' '.join(f'{key}:{shown(value[key])}' for key in sorted(value))}]"
        case list():
            return f"[{' '.join(map(shown, value))}]"
        case None:
            return "<nil>"
        case bool():
            return json.dumps(value)
        case str():
            return value
        case _:
            return _shown_number(float(value))


def _shown_number(value: float) -> str:
    """As Python's `g` does, but with the shortest digits."""
    written = _with_exponent(value)
    if not LEAST_PLAIN_EXPONENT <= int(written.partition("e")[2]) < PLAIN_DIGITS:
        return written
    return str(int(value)) if value.is_integer() else repr(value)


# The shapes of the daemon's structs: what its decoders fill in, and what its validators then require.
#
# A shape has a name for error messages, a zero value, and is either a scalar, a list, a free value or a record of
# fields. Field names are the JSON keys; `go` names are what a validator's message says.


@dataclass(frozen=True)
class Scalar:
    go: str
    """string, bool, int or float64."""
    named: str = ""
    """The Go type's own name, where it has one."""
    nullable: bool = False
    """A pointer: null is not the zero value."""

    @property
    def name(self) -> str:
        return self.named or self.go


@dataclass(frozen=True)
class Price:
    """A decimal, which Go writes as a text without an exponent."""

    name = "decimal.Decimal"


@dataclass(frozen=True)
class Free:
    """Any value."""

    name = "interface {}"


@dataclass(frozen=True)
class Raw:
    """json.RawMessage: kept as it is written, in a map decoder a list of bytes."""

    name = "json.RawMessage"


@dataclass(frozen=True)
class Table:
    """A map of free values."""

    name = "map[string]interface {}"


@dataclass(frozen=True)
class Several:
    of: "Shape"

    @property
    def name(self) -> str:
        return f"[]{self.of.name}"


@dataclass(frozen=True)
class Content:
    """The content of a prompt message: a text, or a list of parts. The daemon decodes it separately, and last."""

    part: "Record"
    name = "interface {}"


@dataclass(frozen=True)
class Field:
    key: str
    go: str
    shape: "Shape"
    required: bool = False
    tag: str = ""
    """A validator of the daemon's own, with the values that it takes."""
    allowed: frozenset[str] = frozenset()
    within: str = ""
    """The embedded struct that has the field, for messages."""
    omitted_when_empty: bool = False


@dataclass(frozen=True)
class Record:
    name: str
    """With its package, as in a message about a whole value."""
    fields: tuple[Field, ...]
    nullable: bool = False
    by_key: dict[str, Field] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_key", {each.key: each for each in self.fields})

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]


type Shape = Scalar | Price | Free | Raw | Table | Several | Content | Record

TEXT = Scalar("string")


def zero(shape: Shape) -> Json:
    match shape:
        case Scalar():
            return None if shape.nullable else {"string": "", "bool": False}.get(shape.go, 0)
        case Price():
            return "0"
        case Record():
            return None if shape.nullable else {each.key: zero(each.shape) for each in shape.fields}
        case _:
            return None


def violations(record: Record, value: Json, path: str = "") -> Iterator[str]:
    """The validator's sentences about a decoded record, in the order of its fields."""
    path = path or record.short_name
    for each in record.fields:
        where = f"{path}.{each.within}{'.' if each.within else ''}{each.go}"
        tag = _broken_tag(each, value[each.key])
        if tag:
            yield f"Key: '{where}' Error:Field validation for '{each.go}' failed on the '{tag}' tag"
        else:
            yield from _inner_violations(each.shape, value[each.key], where)


def _inner_violations(shape: Shape, value: Json, where: str) -> Iterator[str]:
    if isinstance(shape, Record) and value is not None:
        yield from violations(shape, value, where)
    elif isinstance(shape, Several):
        for position, item in enumerate(value or ()):
            yield from _inner_violations(shape.of, item, f"{where}[{position}]")


def _broken_tag(rule: Field, value: Json) -> str:
    if rule.required and (value is None or (isinstance(rule.shape, Scalar) and value == "")):
        return "required"
    return rule.tag if rule.tag and value not in rule.allowed else ""


def written(record: Record, value: Json) -> Json:
    """The record as Go writes it: its fields in their order, without those that are left out when they are empty."""
    result: dict[str, Json] = {}
    for each in record.fields:
        item = value[each.key]
        if item is None and each.omitted_when_empty:
            continue
        result[each.key] = _written(each.shape, item)
    return result


def _written(shape: Shape, value: Json) -> Json:
    match shape:
        case Record() if value is not None:
            return written(shape, value)
        case Several() if value is not None:
            return [_written(shape.of, item) for item in value]
        case _:
            return value


# A JSON value in a shape, as Go's encoding/json reads it, with its own words for what does not fit.
#
# The first fault in the document counts, a decoder's before a validator's. Null is the zero value.


class GoDecodeError(Exception):
    """What the decoder or the validator says."""


def from_json(record: Record, value: Json) -> Json:
    """The value as Go writes it after decoding and validating it; GoDecodeError otherwise."""
    reading = _Reading()
    decoded = reading.read(record, value, "", "")
    if reading.fault:
        raise GoDecodeError(reading.fault)
    return validated(record, decoded)


def validated(record: Record, decoded: Json) -> Json:
    """The record as Go writes it; GoDecodeError in the words of the validator."""
    faults = list(violations(record, decoded))
    if faults:
        raise GoDecodeError("\n".join(faults))
    return written(record, decoded)


@dataclass
class _Reading:
    """encoding/json. A fault names the struct that is read, and the way to the field in it."""

    fault: str = ""

    def read(self, shape: Shape, value: Json, owner: str, path: str) -> Json:
        if isinstance(shape, Raw):
            return value
        if value is None:
            return zero(shape)
        match shape:
            case Record() if isinstance(value, dict):
                return self._record(shape, value, owner, path)
            case Several() if isinstance(value, list):
                return [self.read(shape.of, item, owner, path) for item in value]
            case Free():
                return self._free(value)
            case Table() if isinstance(value, dict):
                return self._free(value)
            case Price() if not isinstance(value, bool | dict | list):
                return self._price(value)
            case Scalar() if fits(shape, value):
                return well_formed(value) if isinstance(value, str) else _number_of(shape, value)
        self._misfit(shape, value, owner, path)
        return zero(shape)

    def _record(self, shape: Record, value: Json, owner: str, path: str) -> Json:
        decoded = {each.key: zero(each.shape) for each in shape.fields}
        for key, item in value.items():
            known = shape.by_key.get(key)
            if known is not None and not isinstance(known.shape, Content):
                steps = ".".join(filter(None, [path, known.within, key]))
                decoded[key] = self.read(known.shape, item, shape.short_name or owner, steps)
        for each in shape.fields:
            if isinstance(each.shape, Content):
                decoded[each.key] = self._content(each.shape, value.get(each.key))
        return decoded

    def _content(self, shape: Content, content: Json) -> Json:
        match content:
            case str():
                return well_formed(content)
            case None:
                self._say("content field is required")
                return None
        inner = _Reading()
        decoded = inner.read(Several(shape.part), content, "", "")
        if inner.fault:
            self._say("content field must be a string or a list of contents")
        return decoded

    def _free(self, value: Json) -> Json:
        try:
            return remarshalled(value)
        except NumberRangeError as error:
            self._say(str(error))
            return None

    def _price(self, value: str | float) -> str:
        text = value if isinstance(value, str) else literal(value)
        try:
            price = decimal.Decimal(text)
        except decimal.InvalidOperation:
            price = decimal.Decimal("NaN")
        if not price.is_finite():
            self._say(f"error decoding string '{text}': can't convert {text} to decimal")
            return "0"
        plain = format(price, "f")
        return (plain.rstrip("0").rstrip(".") if "." in plain else plain) or "0"

    def _misfit(self, shape: Shape, value: Json, owner: str, path: str) -> None:
        kind = kind_of(value)
        if kind == "number" and isinstance(shape, Scalar) and shape.go == "int":
            kind = f"number {literal(value)}"
        place = f"Go struct field {owner}.{path}" if path else "Go value"
        self._say(f"json: cannot unmarshal {kind} into {place} of type {shape.name}")

    def _say(self, fault: str) -> None:
        self.fault = self.fault or fault


def fits(shape: Scalar, value: Json) -> bool:
    """Whether a value that is not null fits the scalar."""
    match shape.go:
        case "string":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
        case _:
            return isinstance(value, int | float) and not isinstance(value, bool)


def _number_of(shape: Scalar, value: float) -> Json:
    return value if shape.go in ("bool", "int") else number(value)


# A request in a shape, as mapstructure reads it, which decodes what has been parsed into a map before.
#
# It collects all errors and sorts them; the validator runs if there are none. Null is the zero value.

KINDS = {"object": "map", "array": "slice", "number": "float64"}
"""reflect's words for a decoded value, where they differ from encoding/json's."""
TYPES = {"object": "map[string]interface {}", "array": "[]interface {}", "number": "float64"}


def from_map(record: Record, value: Json) -> Json:
    """The request as Go writes it after decoding and validating it; GoDecodeError otherwise."""
    mapping = _Mapping()
    decoded = mapping.read(record, remarshalled(value), "")
    if mapping.faults:
        listed = "\n".join(f"* {fault}" for fault in sorted(mapping.faults))
        raise GoDecodeError(f"error decoding map: {len(mapping.faults)} error(s) decoding:\n\n{listed}")
    try:
        return validated(record, decoded)
    except GoDecodeError as error:
        raise GoDecodeError(f"error validating struct: {error}") from None


@dataclass
class _Mapping:
    """mapstructure, without weak typing. A fault names the field by its whole path."""

    faults: list[str] = field(default_factory=list)

    def read(self, shape: Shape, value: Json, path: str) -> Json:
        if value is None:
            return zero(shape)
        kind = kind_of(value)
        match shape:
            case Free():
                return value
            case Record() | Table():
                if not isinstance(value, dict):
                    self.faults.append(f"'{path}' expected a map, got '{KINDS.get(kind, kind)}'")
                    return zero(shape)
                return value if isinstance(shape, Table) else self._record(shape, value, path)
            case Several() | Raw():
                if not isinstance(value, list):
                    said = f"'{path}': source data must be an array or slice, got {KINDS.get(kind, kind)}"
                    self.faults.append(said)
                    return None
                return self._list(shape, value, path)
            case Scalar() if not fits(shape, value):
                self._misfit(shape.go, value, path)
                return zero(shape)
        return value

    def _record(self, shape: Record, value: Json, path: str) -> Json:
        before = f"{path}." if path else ""
        return {each.key: self.read(each.shape, value.get(each.key), before + each.key) for each in shape.fields}

    def _list(self, shape: Several | Raw, value: list[Json], path: str) -> Json:
        if isinstance(shape, Several):
            return [self.read(shape.of, item, f"{path}[{position}]") for position, item in enumerate(value)]
        for position, item in enumerate(value):
            if not isinstance(item, int | float) or isinstance(item, bool):
                self._misfit("uint8", item, f"{path}[{position}]")
        return None if self.faults else self._raw(value, path)

    def _raw(self, value: list[Json], path: str) -> Json:
        """Numbers are the bytes of a JSON text; no bytes count as null."""
        try:
            return json.loads(bytes(int(item) for item in value)) if value else None
        except ValueError as error:
            self.faults.append(f"'{path}' is not JSON: {error}")
            return None

    def _misfit(self, wanted: str, value: Json, path: str) -> None:
        got = TYPES.get(kind_of(value), kind_of(value))
        self.faults.append(
            f"'{path}' expected type '{wanted}', got unconvertible type '{got}', value: '{shown(value)}'"
        )
