"""JSON as Go's encoding/json reads and writes it, for values of any shape."""

import json
from typing import Any

type Json = Any
"""What `json.loads` gives: dict, list, str, int, float, bool or None."""

EXPONENT_FROM = 1e21
"""From here on Go writes a whole number with an exponent."""


def well_formed(text: str) -> str:
    """Two halves of a surrogate pair are one character, and half of one is U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def number(value: float) -> int | float:
    """1.0 → 1, 9007199254740993 → 9007199254740992."""
    try:
        read = float(value)
    except OverflowError:
        return value  # Go refuses such a message; no plugin is known to have sent one
    if read.is_integer() and abs(read) < EXPONENT_FROM:
        return int(read)
    return read


def remarshalled(value: Json) -> Json:
    """The value after it was decoded into Go's `any` and encoded again. Of two keys that become one, the later counts.

    Go sorts by the keys' UTF-8 bytes, which is the order of their characters.
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
    """The text that Go writes of a value that is `remarshalled`. Keys stay in their order, as fields of a struct do."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
