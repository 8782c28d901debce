"""Values as the node's panel sends them, read leniently.

In: whatever stands under a parameter's name: text for numbers, words for switches, nothing in five spellings. Out: the
value that was meant; what cannot be meant is replaced and noted, never an exception.
"""

import json
import math
import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from internal.text.fairness import in_turns
from internal.text.notes import Note, OurWords, Quoting
from internal.text.pasted import looks_like_selector, missing_variable, parse_pasted, read_pasted

_TRUE_WORDS = frozenset({"true", "yes", "y", "1", "on"})
_FALSE_WORDS = frozenset({"false", "no", "n", "0", "off"})
_SEPARATOR = re.compile(r"[,，、\n]")
_MAX_NAMED = 5
"""Unknown names that are noted."""
_MAX_NAME_LENGTH = 100
"""Characters of such a name in a note."""


class Limits(NamedTuple):
    """The range and the default of a whole number."""

    least: int
    default: int
    most: int | None
    """None for no maximum; then 0 switches the limit off."""

    def named(self, number: float) -> str:
        """The number as a note tells it."""
        return "0, which is no limit," if number == 0 and self.most is None else f"{number}"


def _was_left_alone(value: object) -> bool:
    return value is None or value in ("", [], [None], {})


def as_json(value: object) -> object:
    """A parameter as the host sent it: the SDK makes File objects of the files in it and in a list."""
    if isinstance(value, list):
        return [as_json(item) if isinstance(item, BaseModel) else item for item in value]
    return value.model_dump(mode="json", serialize_as_any=True) if isinstance(value, BaseModel) else value


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
    number, most = _as_number(value), math.inf if limits.most is None else limits.most
    clamped = min(max(number, limits.least), most)
    if not math.isfinite(clamped):
        problem = "not a number" if math.isnan(number) else "too large"
        note(OurWords(f"{name}: {problem}; {limits.named(limits.default)} is used"))
        return limits.default
    if number != clamped:
        allowed = f"below {limits.least}" if limits.most is None else f"outside {limits.least} to {limits.most}"
        note(Quoting(f"{name}: {number:g} is {allowed}; {limits.named(clamped)} is used"))
    return max(int(clamped), math.ceil(min(clamped, 1)))  # 0.4 is a limit, and 0 may be none


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


def read_switch(name: str, value: object, note: Note, *, default: bool = False) -> bool:
    if _was_left_alone(value):
        return default
    word = str(value).strip().lower()
    if word in _TRUE_WORDS:
        return True
    if word in _FALSE_WORDS:
        return False
    note(OurWords(f"{name}: neither true nor false; {str(default).lower()} is used"))
    return default


def read_names(value: object) -> Iterable[str]:
    """Names from a list, from the text of one, or separated by commas (of any script) or lines."""
    for entry in value if isinstance(value, list) else [value]:
        text = read_pasted(read_string(entry))
        listed = _read_list(text)
        for item in [text] if listed is None else listed:
            for name in _SEPARATOR.split(read_string(item)):
                if name.strip():
                    yield name.strip()


def read_choices[T: StrEnum](name: str, value: object, choices: type[T], note: Note) -> frozenset[T]:
    """The choices that are named, in upper or lower case; the first few unknown names are noted."""
    named = {each.casefold(): each for each in in_turns(read_names(value))}
    known = {choice.value for choice in choices}
    for key in [key for key in named if key not in known][:_MAX_NAMED]:
        unknown = named[key][:_MAX_NAME_LENGTH]
        missing = f"; {missing_variable(unknown)}" if looks_like_selector(unknown) else ""
        note(Quoting(f"{name}: {unknown!r} is ignored; the names are {', '.join(choices)}{missing}"))
    return frozenset(choices(key) for key in named if key in known)


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
