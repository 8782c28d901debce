"""Arguments brought into the types that a schema asks for, where nothing is lost by it.

In: a JSON value and the check of its schema. Out: the value with each part that was spelled in another type in its own:
``"7"`` as 7, the JSON text of an array as the array; and without null for what is left out. Among alternatives the one
that the result satisfies is chosen; what fits nowhere stays as it is.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from internal.schema.check import Check, Steps, Unchecked
from internal.schema.references import references_of, resolve
from internal.schema.types import named_types, names_of_type, possible_types, type_of
from internal.text.wellformed import without_escaped_nul
from internal.tooling import refuse_constant, refuse_unwritable

_NOTHING: Any = object()
"""Where null is a result."""
_OPTION_STEPS = 10
"""What a look at one option costs."""
_NUMBERS = frozenset({"integer", "fraction"})
_WORDS: Mapping[str, Mapping[str, object]] = {"boolean": {"true": True, "false": False}, "null": {"null": None}}
_PARSED_TYPES = {
    "integer": frozenset({"integer"}),
    "number": _NUMBERS,
    "array": frozenset({"array"}),
    "object": frozenset({"object"}),
}


@dataclass(frozen=True)
class Fitter:
    """Fits values to one schema."""

    check: Check
    takes_texts: bool
    """Whether a boolean, object or array may become its JSON text as a whole: tools ask for "a JSON string"."""
    steps: Steps = field(default_factory=Steps)

    def fit(self, value: object) -> object:
        """The value, fitted to the whole schema.

        Raises:
            Unchecked: it takes too many steps.
        """
        try:
            if self._is_fit(value):
                return value
            as_text = _NUMBERS | {"boolean", "object", "array"} if self.takes_texts else _NUMBERS
            return self._fit(value, self.check.schema, as_text)
        except (RecursionError, ValueError):  # too deep, or half a surrogate pair
            raise Unchecked from None

    def _is_fit(self, value: object) -> bool:
        """Whether the value satisfies the schema as it is, and holds no whole number written as a fraction."""
        has_fractions = isinstance(value, float) or (isinstance(value, dict | list) and b".0" in to_json(value))
        return not has_fractions and self.check.accepts(value, self.check.schema, self.steps)

    def _fit(self, value: object, schema: object, as_text: frozenset[str] = _NUMBERS) -> object:
        """``as_text`` are the types of which a value may become its JSON text."""
        self.steps.spend()
        if not isinstance(schema, Mapping):
            return value
        for reference in references_of(schema):
            value = self._fit(value, resolve(self.check.schema, reference), as_text)
        for part in _list(schema.get("allOf")):
            value = self._fit(value, part, as_text)
        for keyword in ("anyOf", "oneOf"):
            if isinstance(schema.get(keyword), list):
                value = self._fit_one_of(value, schema, keyword, as_text)
        value = self._of_type(self._spelled(value, schema), schema, as_text)
        if isinstance(value, dict):
            return dict(self._members(value, schema))
        if isinstance(value, list):
            return list(self._items(value, schema))
        return value

    def _fit_one_of(self, value: object, schema: Mapping[str, Any], keyword: str, as_text: frozenset[str]) -> object:
        """The value as the first alternative takes it, unless one takes it as it is.

        Where one takes values of the value's own type, it becomes no text: what does not fit there is an error.
        """
        if self.check.accepts(value, schema, self.steps, keyword):
            return value
        branches = schema[keyword]
        if any(type_of(value) in possible_types(branch, self.check, self.steps) for branch in branches):
            as_text = frozenset()
        for branch in branches:
            fitted = self._fit(value, branch, as_text)
            if self.check.accepts(fitted, schema, self.steps, keyword):
                return fitted
        return value

    def _spelled(self, value: object, schema: Mapping[str, Any]) -> object:
        """The option that is the text of a boolean or number: ``"false"`` for false."""
        options = _list(schema.get("enum")) or ([schema["const"]] if "const" in schema else [])
        if not isinstance(value, int | float) or not options:
            return value
        self.steps.spend(_OPTION_STEPS * len(options))
        if any(each == value and type_of(each) == type_of(value) for each in options):
            return value
        return _spelling(value, [each for each in options if isinstance(each, str)])

    def _of_type(self, value: object, schema: Mapping[str, Any], as_text: frozenset[str]) -> object:
        kinds = names_of_type(schema)
        is_taken = type_of(value) in named_types(schema)
        is_choice = len(kinds) > 1
        if is_taken and (not is_choice or isinstance(value, dict | list)):
            return int(value) if isinstance(value, float) and kinds == ["integer"] else value
        if is_taken and self.check.accepts(value, schema, self.steps):
            return value
        converted = [self._converted(value, kind, schema, as_text) for kind in kinds]
        candidates = [candidate for candidate in converted if candidate is not _NOTHING]
        if is_choice:
            satisfying = [each for each in candidates if self.check.accepts(each, schema, self.steps)]
            candidates = satisfying or ([] if is_taken else candidates)
        return candidates[0] if candidates else value

    def _converted(self, value: object, kind: str, schema: Mapping[str, Any], as_text: frozenset[str]) -> object:
        """The value as the type, _NOTHING when it cannot be."""
        if isinstance(value, str):
            return _parsed(value.strip(), kind)
        if kind == "integer" and isinstance(value, float) and value.is_integer():
            return int(value)
        if kind != "string" or type_of(value) not in as_text or "enum" in schema or "const" in schema:
            return _NOTHING
        return json.dumps(value, ensure_ascii=False)

    def _members(self, value: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        named = schema.get("properties")
        properties = named if isinstance(named, Mapping) else {}
        others = None if "patternProperties" in schema else schema.get("additionalProperties")
        required = _list(schema.get("required"))
        for key, item in value.items():
            own = properties.get(key, others)
            is_left_out = item is None and key in properties and key not in required
            if not (is_left_out and not self.check.accepts(None, own, self.steps)):
                yield key, self._fit(item, own)

    def _items(self, value: Sequence[object], schema: Mapping[str, Any]) -> Iterator[object]:
        items = schema.get("items")
        first = [*_list(schema.get("prefixItems")), *_list(items)]  # A list under "items" in older dialects.
        for position, item in enumerate(value):
            yield self._fit(item, first[position] if position < len(first) else items)


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _spelling(value: object, texts: Sequence[str]) -> object:
    """The text among these that spells a boolean or number; the value itself where none does."""
    spellings = [json.dumps(value)]
    if isinstance(value, float) and value.is_integer():
        spellings.append(str(int(value)))
    exact = (each for each in texts if each in spellings)
    in_any_case = (each for each in texts if isinstance(value, bool) and each.lower() in spellings)
    return next(exact, next(in_any_case, value))


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
