"""JSON as Go's encoding/json reads and writes it, for values of any shape."""

import json
from typing import Any

type Json = Any
"""A value that `json.loads` returns: dict, list, str, int, float, bool or None."""

EXPONENT_FROM = 1e21
"""The limit from which Go writes a whole number with an exponent."""


def well_formed(text: str) -> str:
    """Join two halves of a surrogate pair into one character, and replace a single half by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def number(value: float) -> int | float:
    """Return a number as Go reads it: 1.0 becomes 1, and 9007199254740993 becomes 9007199254740992."""
    try:
        read = float(value)
    except OverflowError:
        return value  # Go refuses such a message; no plugin is known to have sent one
    if read.is_integer() and abs(read) < EXPONENT_FROM:
        return int(read)
    return read


def remarshalled(value: Json) -> Json:
    """Return a value as it is after Go decodes it into `any` and encodes it again.

    If two keys become equal, the later one counts. Go sorts by the keys' UTF-8 bytes, which is the order of their
    characters.
    """
    match value:
        case bool() | None:
            return value
        case str():
            return well_formed(value)
        case int() | float():
            return number(value)
        case dict():
            items = {well_formed(key): item for key, item in value.items()}
            return {key: remarshalled(items[key]) for key in sorted(items)}
        case _:
            return [remarshalled(item) for item in value]


def marshalled(value: Json) -> str:
    """Return the text that Go writes for a `remarshalled` value. Keys keep their order, like the fields of a struct."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
