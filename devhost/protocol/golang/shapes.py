"""The shapes of the daemon's structs: what its decoders fill in, and what its validators then require.

A shape has a name for error messages, a zero value, and is either a scalar, a list, a free value or a record of
fields. Field names are the JSON keys; `go` names are what a validator's message says.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from devhost.protocol.golang.values import Json


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
