"""What is said of a value that does not satisfy one keyword of a schema, in JSON's words.

In: the keyword, what it demands, and the value. Out: a predicate for the model, which quotes at most 200 characters.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from internal.schema.check import Problem
from internal.tooling import json_type

MAX_QUOTE_LENGTH = 200
TELLS = {"const": 2, "enum": 2, "type": 1}
"""How much of what would be right a problem tells: all values, the type, or one thing beside others."""


def about(keyword: str, value: Any, said: Any, place: tuple[str | int, ...]) -> Problem:  # noqa: ANN401 - JSON
    """The problem that a value does not satisfy one keyword."""
    if keyword == "type":
        types = tuple(str(each) for each in said) if isinstance(said, list) else (str(said),)
        return Problem(place, wrong_type(types, value), keyword, types)
    say = _PREDICATES.get(keyword)
    predicate = f"does not satisfy {keyword} {quoted(said)}" if say is None else say(value, said)
    return Problem(place, predicate, keyword)


def quoted(value: object) -> str:
    """A value as JSON, in part where it is long."""
    if isinstance(value, str | list):  # Most of a long value need not be written out.
        value = value[: MAX_QUOTE_LENGTH + 1]
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_QUOTE_LENGTH else text[:MAX_QUOTE_LENGTH] + "…"


def _value(said: str) -> Callable[[Any, Any], str]:
    return lambda value, limit: f"value {quoted(value)} {said} {quoted(limit)}"


def _size(of: str, least_or_most: str) -> Callable[[Any, Any], str]:
    return lambda value, limit: f"has {len(value)} {of} and must have at {least_or_most} {limit}"


def wrong_type(types: Sequence[str], value: object) -> str:
    *others, last = [kind if kind == "null" else f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind}" for kind in types]
    wanted = f"{', '.join(others)} or {last}" if others else last
    return f"must be {wanted}, got {json_type(value)}"


def unexpected(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[: MAX_QUOTE_LENGTH // 4]) for name in names)
    return f": Additional properties are not allowed ({shown} {'was' if len(names) == 1 else 'were'} unexpected)"


def _missing(value: Mapping[str, Any], required: Sequence[str]) -> str:
    missing = next(name for name in required if name not in value)
    return f": {missing[:MAX_QUOTE_LENGTH]!r} is a required property"


def _missing_beside(value: Mapping[str, Any], required: Mapping[str, Sequence[str]]) -> str:
    beside, missing = next(
        (name, each) for name, needed in required.items() if name in value for each in needed if each not in value
    )
    return f": {missing!r} is required beside {beside!r}"[:MAX_QUOTE_LENGTH]


_PREDICATES: Mapping[str, Callable[[Any, Any], str]] = {
    "enum": _value("not in options"),
    "const": _value("must be"),
    "minimum": _value("is below the minimum"),
    "maximum": _value("is above the maximum"),
    "exclusiveMinimum": _value("must be above"),
    "exclusiveMaximum": _value("must be below"),
    "multipleOf": _value("is not a multiple of"),
    "pattern": _value("does not match the pattern"),
    "minLength": _size("characters", "least"),
    "maxLength": _size("characters", "most"),
    "minItems": _size("items", "least"),
    "maxItems": _size("items", "most"),
    "minProperties": _size("properties", "least"),
    "maxProperties": _size("properties", "most"),
    "uniqueItems": lambda _value, _said: "must not have equal items",
    "contains": lambda _value, wanted: f"must have items that satisfy {quoted(wanted)}",
    "not": lambda _value, unwanted: f"must not satisfy {quoted(unwanted)}",
    "oneOf": lambda _value, _branches: "fits more than one of the alternatives, and only one may fit",
    "required": _missing,
    "dependentRequired": _missing_beside,
    "unevaluatedProperties": lambda _value, _said: "has properties that the schema does not allow",
    "unevaluatedItems": lambda _value, _said: "has items that the schema does not allow",
}


def urgency(keyword: str) -> int:
    """What tells most comes first, and what needs the whole schema last."""
    return 1 if keyword.startswith("unevaluated") else -TELLS.get(keyword, 0)


def types_at(place: tuple[str | int, ...], problems: Sequence[Problem]) -> tuple[str, ...]:
    """The types that would have been right at a place, if the type is wrong there."""
    return next((problem.types for problem in problems if problem.place == place and problem.keyword == "type"), ())


def distance(place: tuple[str | int, ...], problems: Sequence[Problem]) -> tuple[bool, bool, int]:
    """How far a value is from an alternative: of another type, of another kind, or with this many problems."""
    wrong_type = bool(types_at(place, problems))
    wrong_kind = any(each.keyword in {"const", "enum"} and len(each.place) <= len(place) + 1 for each in problems)
    return wrong_type, wrong_kind, len(problems)
