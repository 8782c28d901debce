"""Values as the node's panel sends them, read leniently.

In: whatever stands under a parameter's name: text for numbers, words for switches, nothing in five spellings. Out: the
value that was meant; what cannot be meant is replaced and noted, never an exception.
"""

import json
import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from pydantic import ValidationError

from internal.text.notes import Note, OurWords, Quoting
from internal.text.pasted import parse_pasted, read_pasted

_TRUE_WORDS = frozenset({"true", "yes", "y", "1", "on"})
_FALSE_WORDS = frozenset({"false", "no", "n", "0", "off"})


class Limits(NamedTuple):
    """The range and the default of a whole number."""

    least: int
    default: int
    most: int


def _was_left_alone(value: object) -> bool:
    return value is None or value in ("", [], [None], {})


def read_string(value: object) -> str:
    if _was_left_alone(value):
        return ""
    if isinstance(value, dict | list):
        # Dify parses a template that happens to be JSON.
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def read_number(name: str, value: object, limits: Limits, note: Note) -> int:
    if _was_left_alone(value):
        return limits.default
    number = _as_number(value)
    if math.isnan(number):
        note(OurWords(f"{name}: not a number; {limits.default} is used"))
        return limits.default
    clamped = int(min(max(number, limits.least), limits.most))
    if not limits.least <= number <= limits.most:
        note(Quoting(f"{name}: {number:g} is outside {limits.least} to {limits.most}; {clamped} is used"))
    return clamped


def _as_number(value: object) -> float:
    """The number that a value means; NaN if it means none, infinity if it exceeds a float."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if isinstance(value, int) and value > 0 else -math.inf
    except ValueError:
        return math.nan


def read_switch(name: str, value: object, note: Note) -> bool:
    if _was_left_alone(value):
        return False
    word = str(value).strip().lower()
    if word in _TRUE_WORDS:
        return True
    if word not in _FALSE_WORDS:
        note(OurWords(f"{name}: neither true nor false; false is used"))
    return False


def read_names(value: object) -> Iterable[str]:
    """Names from a list, from the text of one, or separated by commas or lines."""
    for entry in value if isinstance(value, list) else [value]:
        text = read_pasted(read_string(entry))
        listed = _read_list(text)
        for item in [text] if listed is None else listed:
            for name in read_string(item).replace("\n", ",").split(","):
                if name.strip():
                    yield name.strip()


def _read_list(text: str) -> list[object] | None:
    try:
        value = parse_pasted(text) if text.lstrip().startswith("[") else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def read_items[T](name: str, value: object, read: Callable[[object], T], note: Note) -> Iterable[T]:
    """Read a list item by item, so that a bad item does not affect the others."""
    items = value if isinstance(value, list) else [value]
    for position, item in enumerate(items, start=1):
        if item is None or item == "":
            continue
        try:
            yield read(item)
        except (ValidationError, TypeError, ValueError):
            note(OurWords(f"{name}: item {position} cannot be read and is left out"))
