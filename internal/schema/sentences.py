"""What is wrong with an argument, as sentences for the model, from the library's errors."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from jsonschema_rs import ValidationError

from internal.schema.check import Check, Problem
from internal.tooling import json_type

_MAX_SENTENCES = 3
_MAX_QUOTE_LENGTH = 200
_NOT_SATISFIED = Problem((), "does not satisfy the schema")
_TELLING = {"const": 0, "enum": 0, "type": 1}
"""Which error of a place is said: one that names all the values, then one that names the type, then any other."""


def sentences(check: Check, value: object, name: str) -> list[str]:
    """The first few things that are wrong with the argument of that name; "" for all arguments together.

    Raises:
        Unchecked: it cannot be checked at all.
    """
    return [_sentence(problem, name) for problem in islice(_problems(check, value), _MAX_SENTENCES)]


def _problems(check: Check, value: object) -> Iterable[Problem]:
    if check.accepts(value):
        return check.more(value)
    by_place: dict[tuple[str | int, ...], ValidationError] = {}
    for error in sorted(check.errors(value), key=_telling):
        by_place.setdefault(tuple(error.instance_path), error)
    return [_problem(error) for error in by_place.values()] or [_NOT_SATISFIED]


def quoted(value: object) -> str:
    """A value as JSON, in part where it is long."""
    if isinstance(value, str | list):  # Most of a long value need not be written out.
        value = value[: _MAX_QUOTE_LENGTH + 1]
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_QUOTE_LENGTH else text[:_MAX_QUOTE_LENGTH] + "…"


def _sentence(problem: Problem, name: str) -> str:
    where = name + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem.place)
    where = where.removeprefix(".")[:_MAX_QUOTE_LENGTH] or "(all)"
    return f"parameter {where!r}{'' if problem.predicate[:1] == ':' else ' '}{problem.predicate}"


def _problem(error: ValidationError) -> Problem:
    place, kind = tuple(error.instance_path), error.kind
    if kind.name == "propertyNames":
        name = error.kind.as_dict()["error"]
        return Problem(place, f": the name {quoted(name.instance)} {_problem(name).predicate}")
    branches: list[list[ValidationError]] = getattr(kind, "context", [])
    if kind.name == "falseSchema" and error.schema_path[-1] == "additionalProperties":
        return Problem(place, ": Additional properties are not allowed")
    if not branches or not all(branches):
        return Problem(place, _predicate(kind.name, error.instance, kind.as_dict()))
    types = [_types_at(error.instance_path, branch) for branch in branches]
    if all(types):
        return Problem(place, _wrong_type(list(dict.fromkeys(chain.from_iterable(types))), error.instance))
    closest = min(branches, key=lambda branch: _distance(error.instance_path, branch))
    found = _problem(min(closest, key=_telling))
    if "alternatives)" in found.predicate:
        return found
    return found._replace(predicate=f"{found.predicate} (the closest of {len(branches)} alternatives)")


def _telling(error: ValidationError) -> int:
    # The library looks at "unevaluated…" first; whether it fails depends on all the others.
    return 3 if error.kind.name.startswith("unevaluated") else _TELLING.get(error.kind.name, 2)


def _types_at(place: Sequence[str | int], errors: Iterable[ValidationError]) -> list[str]:
    """The types that would have been right at a place, if the type is wrong there."""
    wrong = (error for error in errors if error.kind.name == "type" and error.instance_path == place)
    return next((error.kind.as_dict()["types"] for error in wrong), [])


def _distance(place: Sequence[str | int], errors: Sequence[ValidationError]) -> tuple[bool, bool, int]:
    """How far a value is from an alternative: of another type, of another kind, or with this many errors."""
    is_other_kind = any(
        error.kind.name in {"const", "enum"} and len(error.instance_path) <= len(place) + 1 for error in errors
    )
    return bool(_types_at(place, errors)), is_other_kind, len(errors)


def _predicate(keyword: str, value: Any, said: Mapping[str, Any]) -> str:  # noqa: ANN401 - JSON
    """What is said of a value that does not satisfy a keyword; ``said`` is what the library tells of the keyword."""
    say = _PREDICATES.get(keyword)
    try:
        return say(value, said) if say else f"does not satisfy {keyword}"
    except KeyError:  # The library gives one keyword several kinds of error.
        return f"does not satisfy {keyword}"


def _wrong_type(types: Sequence[str], value: object) -> str:
    *others, last = [kind if kind == "null" else f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind}" for kind in types]
    return f"must be {', '.join(others) + ' or ' if others else ''}{last}, got {json_type(value)}"


def _value(words: str, name: str) -> Callable[[Any, Mapping[str, Any]], str]:
    return lambda value, said: f"value {quoted(value)} {words} {quoted(said[name])}"


def _size(of: str, least_or_most: str) -> Callable[[Any, Mapping[str, Any]], str]:
    return lambda value, said: f"has {len(value)} {of} and must have at {least_or_most} {said['limit']}"


def _unexpected(_value: object, said: Mapping[str, Any]) -> str:
    names = [repr(name[: _MAX_QUOTE_LENGTH // 4]) for name in said["unexpected"][:4]]
    were = "was" if len(names) == 1 else "were"
    return f": Additional properties are not allowed ({', '.join(names)} {were} unexpected)"


_PREDICATES: Mapping[str, Callable[[Any, Mapping[str, Any]], str]] = {
    "type": lambda value, said: _wrong_type(said["types"], value),
    "falseSchema": lambda value, _said: f"must not hold {quoted(value)}",
    "enum": _value("not in options", "options"),
    "const": _value("must be", "expected_value"),
    "minimum": _value("is below the minimum", "limit"),
    "maximum": _value("is above the maximum", "limit"),
    "exclusiveMinimum": _value("must be above", "limit"),
    "exclusiveMaximum": _value("must be below", "limit"),
    "multipleOf": _value("is not a multiple of", "multiple_of"),
    "pattern": _value("does not match the pattern", "pattern"),
    "minLength": _size("characters", "least"),
    "maxLength": _size("characters", "most"),
    "minItems": _size("items", "least"),
    "maxItems": _size("items", "most"),
    "minProperties": _size("properties", "least"),
    "maxProperties": _size("properties", "most"),
    "uniqueItems": lambda _value, _said: "must not have equal items",
    "not": lambda _value, said: f"must not satisfy {quoted(said['schema'])}",
    "oneOf": lambda _value, _said: "fits more than one of the alternatives, and only one may fit",
    "required": lambda _value, said: f": {said['property'][:_MAX_QUOTE_LENGTH]!r} is a required property",
    "additionalProperties": _unexpected,
    "unevaluatedProperties": _unexpected,
}
