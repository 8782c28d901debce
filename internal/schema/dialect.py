"""How values are checked against a JSON Schema that somebody else wrote.

In: a dialect of JSON Schema. Out: the same dialect without what could block every session of the process (regular
expressions, comparing each item with each), and with numbers as they are written.
"""

import json
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


@lru_cache
def without_patterns(kind: type[Validator], *, pattern: bool, names_by_pattern: bool) -> type[Validator]:
    """A dialect of JSON Schema that runs no pattern and counts in decimals.

    Where a schema has patterns it accepts rather too much than too little: what a pattern would have told apart (names
    of ``patternProperties``, wherever they stand; what must *not* match; which one of several matches) is not checked.
    """
    checks: dict[str, Callable[..., Iterator[ValidationError]]] = {
        "pattern": _nothing,
        "patternProperties": _nothing,
        "additionalProperties": _additional_properties,
        "multipleOf": _multiple_of,
        "uniqueItems": _unique_items,
    }
    if names_by_pattern:
        checks["unevaluatedProperties"] = _nothing
    if pattern or names_by_pattern:
        checks |= {"not": _not, "oneOf": _one_of, "if": _if}
    known = {keyword: check for keyword, check in checks.items() if keyword in kind.VALIDATORS}
    numbers = kind.TYPE_CHECKER.redefine("number", _is_number)
    dialect: type[Validator] = extend(kind, known, type_checker=numbers)  # type: ignore[no-untyped-call]
    dialect.evolve = _evolve  # type: ignore[assignment, method-assign]
    return dialect


def _evolve(validator: Any, **changes: Any) -> Any:  # noqa: ANN401 - the class is made at run time
    """The same check of another schema, counted as a step.

    The library's own would leave this dialect, and run patterns, at every schema that names another by "$schema".
    """
    if validator.format_checker is not None:
        validator.format_checker.spend()
    return type(validator)(
        schema=changes.get("schema", validator.schema),
        format_checker=changes.get("format_checker", validator.format_checker),
        registry=validator._registry,  # noqa: SLF001 - what it hands on itself
        _resolver=changes.get("_resolver", validator._resolver),  # noqa: SLF001 - as above
    )


def _is_number(_checker: object, value: Any) -> bool:  # noqa: ANN401 - JSON
    return _is_any_number(value) and math.isfinite(value)


def _is_any_number(value: Any) -> bool:  # noqa: ANN401 - JSON
    return isinstance(value, int | float) and not isinstance(value, bool)


def _nothing(_validator: Validator, _said: object, _value: object, _schema: object) -> Iterator[ValidationError]:
    return iter(())


def _additional_properties(
    validator: Validator, said: object, value: object, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    """The dialect's own check runs the patterns beside it."""
    if "patternProperties" not in schema:
        yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, said, value, schema)


def _not(validator: Validator, said: object, value: object, schema: object) -> Iterator[ValidationError]:
    if not _may_hold_pattern(said):
        yield from Draft202012Validator.VALIDATORS["not"](validator, said, value, schema)


def _one_of(validator: Validator, said: Sequence[object], value: object, schema: object) -> Iterator[ValidationError]:
    keyword = "anyOf" if _may_hold_pattern(said) else "oneOf"
    yield from Draft202012Validator.VALIDATORS[keyword](validator, said, value, schema)


def _if(validator: Validator, said: object, value: object, schema: object) -> Iterator[ValidationError]:
    if not _may_hold_pattern(said):
        yield from Draft202012Validator.VALIDATORS["if"](validator, said, value, schema)


def _may_hold_pattern(schema: object) -> bool:
    """Itself, or behind a reference."""
    written = json.dumps(schema)
    return any(f'"{keyword}":' in written for keyword in ("pattern", "patternProperties", *REFERENCES))


def _multiple_of(_validator: object, step: float, value: Any, _schema: object) -> Iterator[ValidationError]:  # noqa: ANN401 - JSON
    """19.99 is a multiple of 0.01: numbers are what is written, not the nearest float."""
    if _is_any_number(value) and not _is_multiple(value, step):
        yield ValidationError(f"{value!r} is not a multiple of {step}")


def _is_multiple(value: float, step: float) -> bool:
    if not all(isinstance(number, int) or math.isfinite(number) for number in (value, step)):
        return False
    return (_as_written(value) / _as_written(step)).denominator == 1


def _as_written(number: float) -> Fraction:
    return Fraction(number if isinstance(number, int) else repr(number))


def _unique_items(
    validator: Validator,
    said: object,
    value: Any,  # noqa: ANN401 - JSON
    _schema: object,
) -> Iterator[ValidationError]:
    """The library's own compares each item with each."""
    if said and validator.is_type(value, "array") and len({_identity(item) for item in value}) < len(value):
        yield ValidationError("it has equal items")


def _identity(value: object) -> Hashable:
    """Equal for values that are equal as JSON: 1 is 1.0, and true is not 1."""
    if isinstance(value, Mapping):
        return ("object", frozenset((key, _identity(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("array", tuple(map(_identity, value)))
    return (isinstance(value, bool), value)
