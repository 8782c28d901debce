"""Arguments converted to the types that a schema asks for, where nothing is lost by it.

``"7"`` becomes 7, the JSON text of an array the array, and null for something optional is left out. Among alternatives
the first one is chosen that the result satisfies; what fits nowhere stays as it is.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from internal.schema.check import Check, Unchecked
from internal.schema.references import below, canonical, references_of, resolve
from internal.text.fairness import give_way
from internal.text.wellformed import without_escaped_nul
from internal.tooling import refuse_constant, refuse_unwritable

_MAX_STEPS = 20_000_000
"""For one value: half a second of work, in which other sessions run now and then."""
_STEPS_PER_TURN = 100_000
_OWN_STEPS = 200
"""What one step of ours costs, in those of the library."""
_NOTHING: Any = object()
"""Where null is a result."""
_NUMBERS = frozenset({"integer", "fraction"})
_WORDS: Mapping[str, Mapping[str, object]] = {"boolean": {"true": True, "false": False}, "null": {"null": None}}
_PARSED_TYPES = {
    "integer": frozenset({"integer"}),
    "number": _NUMBERS,
    "array": frozenset({"array"}),
    "object": frozenset({"object"}),
}


@dataclass
class _Turns:
    left: int = _MAX_STEPS
    since: int = 0

    def spend(self, steps: int) -> None:
        """Count steps; let other sessions run now and then.

        Raises:
            Unchecked: they are too many.
        """
        self.left -= steps
        self.since += steps
        if self.left < 0:
            raise Unchecked
        if self.since > _STEPS_PER_TURN:
            self.since = 0
            give_way()


@dataclass(frozen=True)
class Fitter:
    """Fits values to one schema."""

    check: Check
    takes_texts: bool
    """Whether a boolean, object or array may become its JSON text as a whole: tools ask for "a JSON string"."""
    _turns: _Turns = field(default_factory=_Turns)

    def fit(self, value: object) -> object:
        """The value, fitted to the whole schema.

        Raises:
            Unchecked: it takes too many steps.
        """
        try:
            if self._is_fit(value):
                return value
            as_text = _NUMBERS | {"boolean", "object", "array"} if self.takes_texts else _NUMBERS
            return self._fit(value, self.check.schema, "#", as_text)
        except (RecursionError, ValueError):  # too deep, or half a surrogate pair
            raise Unchecked from None

    def _is_fit(self, value: object) -> bool:
        """Whether the value satisfies the schema as it is, and holds no whole number written as a fraction."""
        has_fractions = isinstance(value, float) or (isinstance(value, dict | list) and b".0" in to_json(value))
        return not has_fractions and self._accepts(value, "#")

    def _accepts(self, value: object, pointer: str) -> bool:
        self._turns.spend(self.check.steps(value))
        return self.check.accepts(value, pointer)

    def _fit(self, value: object, schema: object, at: str, as_text: frozenset[str] = _NUMBERS) -> object:
        """The value, fitted to a part of the schema; ``as_text`` are the types that may become their JSON text."""
        self._turns.spend(_OWN_STEPS)
        if not isinstance(schema, Mapping):
            return value
        for reference in references_of(schema):
            value = self._fit(value, resolve(self.check.schema, reference), canonical(reference), as_text)
        for position, part in enumerate(_list(schema.get("allOf"))):
            value = self._fit(value, part, below(at, "allOf", position), as_text)
        for keyword in ("anyOf", "oneOf"):
            if isinstance(branches := schema.get(keyword), list):
                value = self._fit_one_of(value, branches, below(at, keyword), as_text)
        value = self._of_type(_spelled(value, schema), schema, at, as_text)
        if isinstance(value, dict):
            return dict(self._members(value, schema, at))
        if isinstance(value, list):
            return list(self._items(value, schema, at))
        return value

    def _fit_one_of(self, value: object, branches: Sequence[object], at: str, as_text: frozenset[str]) -> object:
        """The value as the first alternative takes it, unless one takes it as it is.

        Where one takes values of the value's own type, it becomes no text: what does not fit there is an error.
        """
        if self._is_taken(value, branches, at):
            return value
        if any(allows(self.check.schema, branch, type_of(value)) for branch in branches):
            as_text = frozenset()
        for position, branch in enumerate(branches):
            fitted = self._fit(value, branch, below(at, position), as_text)
            if self._is_taken(fitted, branches, at):
                return fitted
        return value

    def _is_taken(self, value: object, branches: Sequence[object], at: str) -> bool:
        taken = [position for position in range(len(branches)) if self._accepts(value, below(at, position))]
        return len(taken) == 1 if at.endswith("/oneOf") else bool(taken)

    def _of_type(self, value: object, schema: Mapping[str, Any], at: str, as_text: frozenset[str]) -> object:
        kinds = names_of_type(schema)
        is_taken = not kinds or type_of(value) in _types(kinds)
        if is_taken and (len(kinds) < 2 or isinstance(value, dict | list)):  # noqa: PLR2004 - no choice of types
            return int(value) if isinstance(value, float) and kinds == ["integer"] else value
        if is_taken and self._accepts(value, at):
            return value
        converted = [_converted(value, kind, schema, as_text) for kind in kinds]
        candidates = [candidate for candidate in converted if candidate is not _NOTHING]
        if len(kinds) > 1:
            satisfying = [each for each in candidates if self._accepts(each, at)]
            candidates = satisfying or ([] if is_taken else candidates)
        return candidates[0] if candidates else value

    def _members(self, value: Mapping[str, Any], schema: Mapping[str, Any], at: str) -> Iterator[tuple[str, object]]:
        named = schema.get("properties")
        properties = named if isinstance(named, Mapping) else {}
        others = None if "patternProperties" in schema else schema.get("additionalProperties")
        required = _list(schema.get("required"))
        for key, item in value.items():
            is_named = key in properties
            own = properties[key] if is_named else others
            place = below(at, "properties", key) if is_named else below(at, "additionalProperties")
            is_left_out = item is None and is_named and key not in required
            if not (is_left_out and not self._accepts(None, place)):
                yield key, self._fit(item, own, place)

    def _items(self, value: Sequence[object], schema: Mapping[str, Any], at: str) -> Iterator[object]:
        keyword = "prefixItems" if "prefixItems" in schema else "items"  # A list under "items" in older dialects.
        first = _list(schema.get(keyword))
        for position, item in enumerate(value):
            if position < len(first):
                yield self._fit(item, first[position], below(at, keyword, position))
            else:
                yield self._fit(item, schema.get("items"), below(at, "items"))


def type_of(value: object) -> str:
    """JSON Schema's type of a value; numbers that are not whole have a type of their own."""
    if isinstance(value, float):
        return "integer" if value.is_integer() else "fraction"
    names = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def names_of_type(schema: Mapping[str, Any]) -> list[str]:
    """What stands under ``type``; none where any type will do."""
    named = schema.get("type")
    return [each for each in (named if isinstance(named, list) else [named]) if isinstance(each, str)]


def allows(root: Mapping[str, Any], schema: object, kind: str) -> bool:
    """Whether the types and alternatives named in a schema allow values of a type; ``root`` is the whole schema."""
    if not isinstance(schema, Mapping):
        return schema is not False
    kinds = names_of_type(schema)
    options = [schema["const"]] if "const" in schema else schema.get("enum")
    if (kinds and kind not in _types(kinds)) or (options and kind not in map(type_of, options)):
        return False
    together = [*(resolve(root, reference) for reference in references_of(schema)), *_list(schema.get("allOf"))]
    choices = [_list(schema.get(keyword)) for keyword in ("anyOf", "oneOf")]
    return all(allows(root, part, kind) for part in together) and all(
        any(allows(root, branch, kind) for branch in choice) for choice in choices if choice
    )


def _types(names: Sequence[str]) -> frozenset[str]:
    return frozenset(kind for name in names for kind in (_NUMBERS if name == "number" else (name,)))


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _converted(value: object, kind: str, schema: Mapping[str, Any], as_text: frozenset[str]) -> object:
    """The value as the type, _NOTHING when it cannot be."""
    if isinstance(value, str):
        return _parsed(value.strip(), kind)
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind != "string" or type_of(value) not in as_text or "enum" in schema or "const" in schema:
        return _NOTHING
    return json.dumps(value, ensure_ascii=False)


def _spelled(value: object, schema: Mapping[str, Any]) -> object:
    """The option that is the text of a boolean or number: ``"false"`` for false; the value itself where none is."""
    options = _list(schema.get("enum")) or ([schema["const"]] if "const" in schema else [])
    if not isinstance(value, int | float) or any(each == value and type_of(each) == type_of(value) for each in options):
        return value
    spellings = [json.dumps(value)]
    if isinstance(value, float) and value.is_integer():
        spellings.append(str(int(value)))
    texts = [each for each in options if isinstance(each, str)]
    in_any_case = (each for each in texts if isinstance(value, bool) and each.lower() in spellings)
    return next((each for each in texts if each in spellings), next(in_any_case, value))


def _parsed(text: str, kind: str) -> object:
    """What a text such as "7", "true" or "[1]" says, when that is of the type; else _NOTHING."""
    if kind in _WORDS:
        return _WORDS[kind].get(text.lower(), _NOTHING)
    try:
        value = json.loads(without_escaped_nul(text), parse_constant=refuse_constant)
        refuse_unwritable(value)
    except (ValueError, RecursionError):
        return _NOTHING
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type_of(value) in _PARSED_TYPES.get(kind, ()) else _NOTHING
