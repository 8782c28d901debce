"""A JSON value in a shape, as Go's encoding/json reads it, with its own words for what does not fit.

The first fault in the document counts, a decoder's before a validator's. Null is the zero value.
"""

import decimal
from dataclasses import dataclass

from devhost.protocol.golang.shapes import (
    Content,
    Free,
    Price,
    Raw,
    Record,
    Scalar,
    Several,
    Shape,
    Table,
    violations,
    written,
    zero,
)
from devhost.protocol.golang.values import Json, NumberRangeError, kind_of, literal, number, remarshalled, well_formed


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
