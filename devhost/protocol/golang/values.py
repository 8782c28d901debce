"""JSON as Go's encoding/json reads and writes it, for values of any shape.

In: what `json.loads` gives. Out: what a reader finds after Go has decoded it into `any` and encoded it again: sorted
keys, every number a float64, no half of a surrogate pair. The words for values and numbers are those of Go's `%v`.
"""

import json
import math
from collections.abc import Iterable
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
