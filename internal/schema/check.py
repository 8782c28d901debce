"""Checks of values against a JSON Schema that others wrote.

In: a schema, and values that a model wrote. Out: whether a value, or a part of one, satisfies the schema or a part of
it. ``jsonschema-rs`` does the checking. A call of it cannot be interrupted, so what it may cost is estimated before;
other sessions have their turn between two calls.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, Never
from urllib.parse import quote, unquote

import jsonschema_rs
from jsonschema_rs import RegexOptions, Registry, Validator

from internal.schema.patterns import MAX_SIZE, Matching
from internal.schema.references import REFERENCES, SchemaUnusable, rewritten
from internal.schema.weight import Weight, weigh
from internal.text.fairness import give_way

MAX_SCHEMAS = 4_096
"""Schemas that are kept ready; nodes with 600 tools have been seen."""
_STEPS_PER_SECOND = 40_000_000
MAX_STEPS = 20_000_000
"""For one value: half a second of work."""
MAX_STEPS_AT_ONCE = 4_000_000
"""For one call of the library: 0.1 s."""
_NOTABLE_SECONDS = 0.001
"""Of matching patterns: with less, it does not depend on the machine what a value costs."""
OWN_STEP = 200
"""What one step of ours costs, in those of the library."""
_STEPS_PER_TURN = 100_000
"""Then other sessions have their turn."""
_MAX_TEXT_LENGTH = 400_000
"""Characters of a schema as JSON; the library reads them in 0.05 s."""
_BASE = "json-schema:///checked"
"""Where the library finds the whole schema; references in it are made absolute."""
_UNUSED = frozenset(
    {"$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"}
    | {"contentEncoding", "contentMediaType", "contentSchema"}
)
"""Keywords that the library does not see: they would name other places to look in, or check what is inside of texts."""
_COMPANIONS: Mapping[str, tuple[str, ...]] = {
    "if": ("then", "else"),
    "contains": ("minContains", "maxContains"),
}
"""Keywords without which another cannot be understood."""
_NAMING: Mapping[str, tuple[str, ...]] = {
    "items": ("prefixItems",),
    "additionalItems": ("items",),
    "additionalProperties": ("properties", "patternProperties"),
}
"""Keywords that name the parts of a value for which another does not count, whatever they ask of those parts."""


class Unchecked(Exception):  # noqa: N818 - says what happened
    """The value was not checked: it would take too many steps, or the library cannot read it."""


class Problem(NamedTuple):
    """What is wrong with a value."""

    place: tuple[str | int, ...]
    """Where, from the value that was checked."""
    predicate: str
    """What is said of that place: "must be a number, got null"; after a colon where it is not a predicate."""
    keyword: str = ""
    types: tuple[str, ...] = ()
    """Names of the types that would have been right, where the type is what is wrong."""
    alternatives: int = 1
    """How many there were where this problem was found in the closest of them."""


class Steps:
    """Counts the steps that are spent on one value."""

    def __init__(self) -> None:
        self._left = MAX_STEPS
        self._since_turn = 0

    def spend(self, steps: int = OWN_STEP) -> None:
        """Count steps; let other sessions run now and then.

        Raises:
            Unchecked: they are too many, for one call of the library or for the value.
        """
        self._left -= steps
        if steps > MAX_STEPS_AT_ONCE or self._left < 0:
            raise Unchecked
        self._since_turn += steps
        if self._since_turn > _STEPS_PER_TURN:
            self._since_turn = 0
            give_way()


class _Dialect(NamedTuple):
    draft: int
    make: Callable[..., Validator]


_LATEST = _Dialect(jsonschema_rs.Draft202012, jsonschema_rs.Draft202012Validator)
_DIALECTS: Mapping[str, _Dialect] = {
    "json-schema.org/draft-04/schema": _Dialect(jsonschema_rs.Draft4, jsonschema_rs.Draft4Validator),
    "json-schema.org/draft-06/schema": _Dialect(jsonschema_rs.Draft6, jsonschema_rs.Draft6Validator),
    "json-schema.org/draft-07/schema": _Dialect(jsonschema_rs.Draft7, jsonschema_rs.Draft7Validator),
    "json-schema.org/draft/2019-09/schema": _Dialect(jsonschema_rs.Draft201909, jsonschema_rs.Draft201909Validator),
}


@dataclass(frozen=True, eq=False)
class Check:
    """Tells whether values satisfy a schema."""

    schema: Mapping[str, Any]
    weight: Weight
    more: Callable[[Any], Iterable[Problem]] = lambda _value: ()
    """What JSON Schema cannot say."""
    _dialect: _Dialect = _LATEST
    _registry: Registry = field(default_factory=lambda: Registry([]))
    _matching: Matching = field(default_factory=Matching)
    _validators: dict[tuple[int, str], tuple[object, Validator]] = field(default_factory=dict)
    """For the parts of the schema, by identity; the part is kept with it, so that its identity is not used again."""
    _made: dict[tuple[int, str], tuple[object, Mapping[str, Any]]] = field(default_factory=dict)
    """Schemas that are made of parts, kept for as long: a new one each time would add a validator each time."""

    def is_satisfied_by(self, value: object, steps: Steps | None = None) -> bool:
        """Whether a value satisfies the whole schema.

        Raises:
            Unchecked
        """
        return self.accepts(value, self.schema, steps or Steps()) and not any(True for _ in self.more(value))

    def accepts(self, value: object, part: object, steps: Steps, keyword: str = "") -> bool:
        """Whether a value satisfies a part of the schema, or one keyword of the part.

        Raises:
            Unchecked
        """
        if not isinstance(part, Mapping):
            return part is not False
        try:
            validator = self._validator(part, keyword, steps)
            steps.spend(self.weight.of(value))
            self._matching.begin()
            is_valid = validator.is_valid(value)
        except ValueError:  # half a surrogate pair, or a keyword that means nothing by itself, as in draft 4
            raise Unchecked from None
        if self._matching.seconds > _NOTABLE_SECONDS:
            steps.spend(int(self._matching.seconds * _STEPS_PER_SECOND))
        return is_valid

    def stricter(self, more: Callable[[Any], Iterable[Problem]]) -> "Check":
        """The same check with one more rule, beside those that it has."""
        return replace(self, more=lambda value: chain(self.more(value), more(value)))

    def read(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        """The part as its dialect reads it: older ones do not look at what stands beside a reference."""
        is_old = self._dialect.draft <= jsonschema_rs.Draft7
        return self.once(part, "$ref", {"$ref": part["$ref"]}) if is_old and isinstance(part.get("$ref"), str) else part

    def once(self, part: Mapping[str, Any], name: str, made: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schema that was made of a part under this name first, whose validator may be known."""
        return self._made.setdefault((id(part), name), (part, made))[1]

    def _validator(self, part: Mapping[str, Any], keyword: str, steps: Steps) -> Validator:
        known = self._validators.get((id(part), keyword))
        if known is not None:
            return known[1]
        steps.spend(self.weight.size * 40)
        wanted = part
        if keyword and not keyword.startswith("unevaluated"):
            wanted = {each: part[each] for each in (keyword, *_COMPANIONS.get(keyword, ())) if each in part}
            wanted |= {each: _names(each, part[each]) for each in _NAMING.get(keyword, ()) if each in part}
        validator = self._compiled(wanted)
        self._validators[id(part), keyword] = (part, validator)
        return validator

    def _compiled(self, part: Mapping[str, Any]) -> Validator:
        return self._dialect.make(
            _as_read_by_the_library(part),
            registry=self._registry,
            validate_formats=False,
            pattern_options=RegexOptions(MAX_SIZE),
            keywords={"pattern": self._matching.keyword()},
        )


def check_of(schema: Mapping[str, Any]) -> Check:
    """The check of values against a schema.

    Raises:
        SchemaUnusable: it is not a JSON Schema, a reference leads out of it or in a circle, or it is too large.
    """
    if not isinstance(schema.get("$schema", ""), str):
        raise SchemaUnusable("its $schema must be a text")
    return _check_of(json.dumps(schema))


@lru_cache(maxsize=MAX_SCHEMAS)
def _check_of(text: str) -> Check:
    """The check of a schema, given as JSON; kept, since a node's tools are the same in every run."""
    give_way()  # It takes some time, and a node may have hundreds of tools.
    if len(text) > _MAX_TEXT_LENGTH:
        raise SchemaUnusable(f"longer than {_MAX_TEXT_LENGTH:,} characters")
    own = json.loads(text)
    named = own.get("$schema", "").partition("://")[2].removesuffix("#")
    dialect = _DIALECTS.get(named, _LATEST)
    try:
        weight = weigh(own)
        seen = _as_read_by_the_library(own)
        registry = Registry([(_BASE, seen)], draft=dialect.draft, retriever=_refuse)
        check = Check(own, weight, _dialect=dialect, _registry=registry)
        check._validator(own, "", Steps())  # noqa: SLF001 - its own module
    except (ValueError, RecursionError) as error:
        raise SchemaUnusable(f"not valid JSON Schema ({str(error).partition(chr(10))[0][:200]})") from None
    return check


def _names(keyword: str, said: Any) -> object:  # noqa: ANN401 - JSON
    """The keyword with schemas that accept everything."""
    if isinstance(said, list):
        return [{} for _ in said]
    return {} if keyword == "items" else {name: {} for name in said}


def _as_read_by_the_library(part: Mapping[str, Any]) -> dict[str, Any]:
    def change(node: Mapping[str, Any], _keyword: str) -> Mapping[str, Any]:
        kept = {key: value for key, value in node.items() if key not in _UNUSED}
        for keyword in REFERENCES:
            if isinstance(reference := node.get(keyword), str) and reference.startswith("#"):
                kept[keyword] = f"{_BASE}#{quote(unquote(reference[1:]), safe='/~')}"
        # Without anchors they mean the same; in a part of a schema the library would look for it in the part.
        if isinstance(kept.get("$recursiveRef"), str) and "$ref" not in kept:
            kept["$ref"] = kept.pop("$recursiveRef")
        if isinstance(node.get("id"), str):  # "$id" in draft 4
            del kept["id"]
        return kept

    return dict(rewritten(part, change))


def _refuse(reference: str) -> Never:
    raise LookupError(reference)
