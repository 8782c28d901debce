"""What speaks against an argument, as sentences for the model, in JSON's words.

In: the errors of a check. Out: one sentence for each place; where none of several alternatives fits, of the one that
came closest.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from jsonschema.exceptions import ValidationError

from internal.tooling import json_type

_MAX_QUOTE_LENGTH = 200
_MAX_SENTENCES = 3
_MAX_ERRORS = 200
"""Errors that are looked at; an array may have one for each of its items."""


def sentences(errors: Iterable[ValidationError], name: str) -> list[str]:
    """The first few things that speak against the argument of that name; "" for all arguments together."""
    first: dict[tuple[str | int, ...], ValidationError] = {}
    for error in islice(errors, _MAX_ERRORS):
        place = tuple(error.absolute_path)
        if place not in first or _tells(error) > _tells(first[place]):
            first[place] = error
        if len(first) > _MAX_SENTENCES:
            break
    return [_sentence(error, name) for error in islice(first.values(), _MAX_SENTENCES)]


def _tells(error: ValidationError) -> int:
    """How much of what would be right an error tells: all values, the type, or one thing beside others."""
    return {"const": 2, "enum": 2, "type": 1}.get(str(error.validator), 0)


def quoted(value: object) -> str:
    """A value as JSON, in part where it is long."""
    if isinstance(value, str | list):  # Most of a long value need not be written out.
        value = value[: _MAX_QUOTE_LENGTH + 1]
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_QUOTE_LENGTH else text[:_MAX_QUOTE_LENGTH] + "…"


def _sentence(error: ValidationError, name: str) -> str:
    closest, alternatives = error, 1
    while branches := _branches(closest):
        if types := _types_alone(branches):
            return _about(closest, name, _wrong_type(types, closest.instance))
        alternatives = max(alternatives, len(branches))
        closest = min(branches, key=_distance)[0]
    beside = f" (the closest of {alternatives} alternatives)" if alternatives > 1 else ""
    predicate = _predicate(closest)
    if "propertyNames" in closest.absolute_schema_path:
        predicate = f": the name {quoted(closest.instance)} {predicate}"
    return _about(closest, name, predicate) + beside


def _about(error: ValidationError, name: str, predicate: str) -> str:
    where = name + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    where = where.removeprefix(".")[:_MAX_QUOTE_LENGTH] or "(all)"
    return f"parameter {where!r}{'' if predicate[:1] == ':' else ' '}{predicate}"


def _branches(error: ValidationError) -> list[list[ValidationError]]:
    """The errors of each alternative that was tried, none for an error without alternatives."""
    branches: dict[str | int, list[ValidationError]] = {}
    for each in error.context or ():
        branches.setdefault(each.relative_schema_path[0], []).append(each)
    return list(branches.values())


def _types_alone(branches: Sequence[Sequence[ValidationError]]) -> list[str]:
    """All types that the alternatives take, if nothing but the value's type speaks against each."""
    types: list[str] = []
    for errors in branches:
        wrong = [error for error in errors if error.validator == "type" and not error.relative_path]
        if not wrong:
            return []
        types += _listed(wrong[0].validator_value)
    return list(dict.fromkeys(types))


def _distance(errors: Sequence[ValidationError]) -> tuple[bool, bool, int]:
    """How far a value is from an alternative: of another type, of another kind, or with this many errors."""
    wrong_type = any(error.validator == "type" and not error.relative_path for error in errors)
    wrong_kind = any(error.validator in {"const", "enum"} and len(error.relative_path) <= 1 for error in errors)
    return wrong_type, wrong_kind, len(errors)


def _predicate(error: ValidationError) -> str:
    if error.validator is None and error.schema is False:
        return f"must not hold {quoted(error.instance)}"  # The library does not say where.
    say = _PREDICATES.get(str(error.validator))
    if say is not None:
        return say(error.instance, error.validator_value)
    if error.validator in _NAMES or not isinstance(error.validator, str):  # no keyword: the error is one of ours
        return f": {error.message}"
    return f"does not satisfy {error.validator} {quoted(error.validator_value)}"


_NAMES = frozenset({"required", "additionalProperties", "unevaluatedProperties", "dependentRequired"})
"""Keywords whose errors the library words well: they name properties and quote no value."""


def _value(said: str) -> Callable[[Any, Any], str]:
    return lambda value, limit: f"value {quoted(value)} {said} {quoted(limit)}"


def _size(of: str, least_or_most: str) -> Callable[[Any, Any], str]:
    return lambda value, limit: f"has {len(value)} {of} and must have at {least_or_most} {limit}"


def _wrong_type(types: Sequence[str], value: object) -> str:
    *others, last = [kind if kind == "null" else f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind}" for kind in types]
    wanted = f"{', '.join(others)} or {last}" if others else last
    return f"must be {wanted}, got {json_type(value)}"


def _listed(types: object) -> list[str]:
    return [str(each) for each in types] if isinstance(types, list) else [str(types)]


_PREDICATES: Mapping[str, Callable[[Any, Any], str]] = {
    "type": lambda value, types: _wrong_type(_listed(types), value),
    "enum": _value("not in options"),
    "const": _value("must be"),
    "minimum": _value("is below the minimum"),
    "maximum": _value("is above the maximum"),
    "exclusiveMinimum": _value("must be above"),
    "exclusiveMaximum": _value("must be below"),
    "multipleOf": _value("is not a multiple of"),
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
}
