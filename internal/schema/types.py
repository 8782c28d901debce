"""Which types of values can satisfy a schema at all.

In: a schema, or a part of one. Out: the types of which a value may exist. What is missing is certain: the schema's
types, options, bounds and parts contradict each other there; what is there may be missing all the same.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from internal.schema.check import Check, Steps
from internal.schema.references import references_of, resolve

ALL_TYPES = frozenset({"null", "boolean", "integer", "fraction", "string", "array", "object"})
"""JSON Schema's, with the numbers that are not whole as a type of their own."""
_NEVER: frozenset[str] = frozenset()
_MAX_OPTIONS = 1_000


def type_of(value: object) -> str:
    if isinstance(value, float):
        return "integer" if value.is_integer() else "fraction"
    names = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def names_of_type(schema: Mapping[str, Any]) -> list[str]:
    """What stands under ``type``; none where any type will do."""
    named = schema.get("type")
    return [each for each in (named if isinstance(named, list) else [named]) if isinstance(each, str)]


def possible_types(part: object, check: Check, steps: Steps, followed: frozenset[str] = frozenset()) -> frozenset[str]:
    """The types of which a value may satisfy a part of the check's schema; ``followed`` are references on the way.

    Raises:
        Unchecked: it takes too many steps.
    """
    steps.spend()
    if not isinstance(part, Mapping):
        return _NEVER if part is False else ALL_TYPES
    part = check.read(part)
    options = [part["const"]] if "const" in part else part.get("enum")
    if isinstance(options, list) and len(options) <= _MAX_OPTIONS:
        return frozenset(type_of(each) for each in options if check.accepts(each, part, steps))
    types = named_types(part) - _unwanted(part.get("not"))
    types -= {kind for kind in types if _contradicts_itself(kind, part, check, steps, followed)}
    for reference in references_of(part):
        if reference not in followed:
            target = resolve(check.schema, reference)
            types &= possible_types(target, check, steps, followed | {reference})
    for each in _parts(part, "allOf"):
        types &= possible_types(each, check, steps, followed)
    for keyword in ("anyOf", "oneOf"):
        if branches := _parts(part, keyword):
            types &= frozenset().union(*(possible_types(each, check, steps, followed) for each in branches))
    return types


def named_types(part: Mapping[str, Any]) -> frozenset[str]:
    """The types that ``type`` allows."""
    types = {
        kind for name in names_of_type(part) for kind in (("integer", "fraction") if name == "number" else (name,))
    }
    return frozenset(types) & ALL_TYPES or (_NEVER if part.get("type") == [] else ALL_TYPES)


def _parts(part: Mapping[str, Any], keyword: str) -> list[object]:
    return part[keyword] if isinstance(part.get(keyword), list) else []


def _unwanted(schema: object) -> frozenset[str]:
    """The types that ``not`` excludes altogether."""
    if schema is True or schema == {}:
        return ALL_TYPES
    return named_types(schema) if isinstance(schema, Mapping) and schema.keys() == {"type"} else _NEVER


def _contradicts_itself(
    kind: str, part: Mapping[str, Any], check: Check, steps: Steps, followed: frozenset[str]
) -> bool:
    """Whether no value of the type can satisfy the keywords for that type."""

    def is_impossible(schema: object) -> bool:
        return not possible_types(schema, check, steps, followed)

    if kind in {"integer", "fraction"}:
        return _has_no_number(kind, part)
    if kind == "string":
        return _size(part, "minLength") > _size(part, "maxLength", math.inf)
    if kind == "array":
        needs_items = _size(part, "minItems") > 0 and "prefixItems" not in part and "items" in part
        too_short = _size(part, "minItems") > _size(part, "maxItems", math.inf)
        return too_short or (needs_items and not isinstance(part["items"], list) and is_impossible(part["items"]))
    if kind == "object":
        required = {name for name in _parts(part, "required") if isinstance(name, str)}
        least, most = max(_size(part, "minProperties"), len(required)), _size(part, "maxProperties", math.inf)
        return least > most or any(is_impossible(each) for each in _schemas_of(required, part))
    return False


def _schemas_of(names: set[str], part: Mapping[str, Any]) -> Iterator[object]:
    """The schemas of these properties."""
    properties = part.get("properties")
    others = True if "patternProperties" in part else part.get("additionalProperties", True)
    yield from (properties.get(name, others) if isinstance(properties, Mapping) else others for name in names)


def _size(part: Mapping[str, Any], keyword: str, default: float = 0) -> float:
    said = part.get(keyword)
    return said if isinstance(said, int | float) and not isinstance(said, bool) else default


def _has_no_number(kind: str, part: Mapping[str, Any]) -> bool:
    """Whether no whole number, or no other, lies between the bounds."""
    least = max(_size(part, "minimum", -math.inf), above := _size(part, "exclusiveMinimum", -math.inf))
    most = min(_size(part, "maximum", math.inf), below := _size(part, "exclusiveMaximum", math.inf))
    if least > most or (least == most and (least in (above, below))):
        return True
    if math.inf in (most, -least):  # math.isfinite fails for an integer beyond the floats
        return False
    if kind == "fraction":
        return least == most and least % 1 == 0
    first = math.floor(least) + 1 if least == above else math.ceil(least)
    last = math.ceil(most) - 1 if most == below else math.floor(most)
    return first > last
