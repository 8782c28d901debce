"""A value in JSON, and what is expected of it. In: a name, the expectation, the value. Out: a `Check` for each key."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from devhost.evaluation.checks.check import Check
from devhost.evaluation.checks.texts import text_checks
from devhost.flow.expectations.expected import ValueExpected

LONGEST = 600
"""Characters of a value in a sentence."""


@dataclass(frozen=True)
class Missing:
    there_are: tuple[str, ...]

    def __str__(self) -> str:
        return f"nothing; there are: {', '.join(self.there_are) or 'none'}"


def found_at(values: Mapping[str, object], path: str) -> object:
    """The value at a path such as `plan.0`; else `Missing`, with the names at the place where the path ends."""
    found: object = values
    for name in path.split("."):
        inside = _parts(found)
        if name not in inside:
            return Missing(tuple(inside))
        found = inside[name]
    return found


def value_checks(name: str, expected: ValueExpected, value: object) -> Iterator[Check]:
    text = value if isinstance(value, str) else _written(value)
    if expected.compares:
        same = _same(expected.equals, value)
        yield Check(f"{name} equals", _written(expected.equals), "" if same else _short(_written(value)))
    for check in text_checks(name, expected, text):
        yield replace(check, found=_short(check.found))


def _parts(value: object) -> Mapping[str, object]:
    match value:
        case dict():
            return {str(key): inside for key, inside in value.items()}
        case list() | tuple():
            return {str(number): inside for number, inside in enumerate(value)}
        case _:
            return {}


def _same(expected: object, value: object) -> bool:
    """The line break at the end of a text in YAML does not count; true is not 1."""
    if isinstance(expected, str) and isinstance(value, str):
        return expected.strip() == value.strip()
    return _written(expected) == _written(value)


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
