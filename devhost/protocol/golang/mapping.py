"""A request in a shape, as mapstructure reads it, which decodes what has been parsed into a map before.

It collects all errors and sorts them; the validator runs if there are none. Null is the zero value.
"""

import json
from dataclasses import dataclass, field

from devhost.protocol.golang.decode import GoDecodeError, fits, validated
from devhost.protocol.golang.shapes import Free, Raw, Record, Scalar, Several, Shape, Table, zero
from devhost.protocol.golang.values import Json, kind_of, remarshalled, shown

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
