"""JSON as Python values: how to visit all of them, how to point into them, and which numbers the host keeps.

The functions take dicts, lists and tuples, as parsed JSON and dumped records have them, and give a long one's visitor
turns with the other sessions. They recurse, so the code that reads a value from outside limits its depth.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

from pydantic_core import to_json

from internal.clock import in_turns_if_many

MAX_EXACT_INTEGER = 2**53
"""The host's daemon reads numbers as floats and rounds larger integers (docs/host-facts.md, "Numbers and keys")."""
_LONG_NUMBER = re.compile(r"\d{16}")
_LONGEST = 18
"""Digits that ``int`` reads in no time; a longer number is too large in any case."""
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


# Every value in a value.


def scalars(value: object) -> Iterator[object]:
    """Every text, number, boolean and null in a value, in its order."""
    if isinstance(value, dict):
        for item in in_turns_if_many(value.values()):
            yield from scalars(item)
    elif isinstance(value, list | tuple):
        for item in in_turns_if_many(value):
            yield from scalars(item)
    else:
        yield value


def members(value: object) -> Iterator[tuple[str, object]]:
    """The name and the value of every member of every object in a value, the outer ones first."""
    if isinstance(value, dict):
        for name, item in in_turns_if_many(value.items()):
            yield name, item
            yield from members(item)
    elif isinstance(value, list | tuple):
        for item in in_turns_if_many(value):
            yield from members(item)


type Change = Callable[[Any, str], Any]
"""A new value in place of this one, or the same object to go on with its parts.

The text is the name under which the value, or an array around it, stands in an object; "" outside of any.
"""


def rebuilt(value: Any, change: Change, name: str = "") -> Any:  # noqa: ANN401 - JSON
    """A copy of a value in which each value is changed, the outer ones first. Tuples stay tuples."""
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
    """One token of a JSON Pointer, without the escapes for ``/`` and ``~``."""
    return token.replace("~1", "/").replace("~0", "~")


def part_of(value: object, token: str) -> Any:  # noqa: ANN401 - JSON
    """The member of an object, or the item of an array, that a token of a pointer names.

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
    """Whether the host would round an integer in a JSON value."""
    return _LONG_NUMBER.search(to_json(value).decode()) is not None and any(map(is_large_integer, scalars(value)))


def read_exactly(text: str) -> Any:  # noqa: ANN401 - JSON
    """The value of a JSON text, in which the integers that the host would round are texts."""

    def integer(digits: str) -> int | str:
        if len(digits) < _LONGEST and not is_large_integer(int(digits)):
            return int(digits)
        return digits

    if _LONG_NUMBER.search(text):
        return json.loads(text, parse_int=integer)
    return json.loads(text)
