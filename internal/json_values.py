"""JSON as Python values: visits all values in a value, resolves pointers, and finds numbers that the host would round.

The functions accept dicts, lists and tuples, as in parsed JSON and dumped records. In a long value they let other
sessions run. Because the functions recurse, the code that parses an outside value limits its depth.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

from pydantic_core import to_json

from internal.clock import in_turns_if_many

MAX_EXACT_INTEGER = 2**53
"""The largest exact integer. The host's daemon reads numbers as floats and rounds larger ones (docs/host-facts.md,
"Numbers and keys")."""
_LONG_NUMBER = re.compile(r"\d{16}")
_LONGEST = 18
"""Number of digits that ``int`` parses quickly. A longer number is too large in any case."""
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


# Functions that visit all parts of a value.


def scalars(value: object) -> Iterator[object]:
    """Yield every text, number, boolean and null in a value, in order."""
    if isinstance(value, dict):
        for item in in_turns_if_many(value.values()):
            yield from scalars(item)
    elif isinstance(value, list | tuple):
        for item in in_turns_if_many(value):
            yield from scalars(item)
    else:
        yield value


def members(value: object) -> Iterator[tuple[str, object]]:
    """Yield the name and the value of every member of every object in a value, the outer ones first."""
    if isinstance(value, dict):
        for name, item in in_turns_if_many(value.items()):
            yield name, item
            yield from members(item)
    elif isinstance(value, list | tuple):
        for item in in_turns_if_many(value):
            yield from members(item)


type Change = Callable[[Any, str], Any]
"""A function that returns a replacement for a value, or the same object to continue with its parts.

The text argument is the name of the object member that has the value, or an array around it; "" if there is none.
"""


def rebuilt(value: Any, change: Change, name: str = "") -> Any:  # noqa: ANN401 - JSON
    """Return a copy of a value with each value in it changed, the outer ones first. Tuples stay tuples."""
    changed = change(value, name)
    if changed is not value:
        return changed
    if isinstance(value, dict):
        return {key: rebuilt(item, change, key) for key, item in in_turns_if_many(value.items())}
    if isinstance(value, list | tuple):
        return type(value)(rebuilt(item, change, name) for item in in_turns_if_many(value))
    return value


# JSON Pointer (RFC 6901).


def unescaped(token: str) -> str:
    """Return a token of a JSON Pointer without the escapes for ``/`` and ``~``."""
    return token.replace("~1", "/").replace("~0", "~")


def part_of(value: object, token: str) -> Any:  # noqa: ANN401 - JSON
    """Return the member of an object, or the item of an array, that a token of a pointer names.

    Raises:
        LookupError: there is no such part.
    """
    if isinstance(value, dict) and token in value:
        return value[token]
    if isinstance(value, list) and _INDEX.fullmatch(token):
        return value[int(token)]
    raise LookupError(token)


# Integers that the host would round.


def is_large_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and abs(value) > MAX_EXACT_INTEGER


def holds_large_integer(value: object) -> bool:
    """Return whether a JSON value has an integer that the host would round."""
    return _LONG_NUMBER.search(to_json(value).decode()) is not None and any(map(is_large_integer, scalars(value)))


def read_exactly(text: str) -> Any:  # noqa: ANN401 - JSON
    """Parse a JSON text, with texts instead of integers that the host would round."""

    def integer(digits: str) -> int | str:
        if len(digits) < _LONGEST and not is_large_integer(int(digits)):
            return int(digits)
        return digits

    if _LONG_NUMBER.search(text):
        return json.loads(text, parse_int=integer)
    return json.loads(text)
