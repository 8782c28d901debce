"""JSON Schemas that others wrote, and values checked against them by jsonschema-rs."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain, islice
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from jsonschema_rs import (
    FancyRegexOptions,
    RegexOptions,
    ValidationError,
    ValidatorMap,
    validator_for,
    validator_map_for,
)
from pydantic_core import to_json

from internal.clock import give_way
from internal.errors import Note, Quoting, Sentence
from internal.text.texts import without_escaped_nul
from internal.tooling import json_type, refuse_constant, refuse_unwritable

# References within one JSON Schema, and copies of a schema with each part changed.
#
# References out of the schema are refused, so that nothing is ever fetched.

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
PLAIN_VALUES = frozenset({"enum", "const", "default", "examples", "dependentRequired"})
"""Keywords under which no schema stands."""
_NAMED_SCHEMAS = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)


class SchemaUnusable(Exception):  # noqa: N818 - says what is the matter
    """The schema cannot be used; the text says why."""


def references_of(schema: Mapping[str, Any]) -> Iterator[str]:
    """The references in a schema; a dialect that does not know one of the keywords lets anything stand there."""
    return (schema[keyword] for keyword in REFERENCES if isinstance(schema.get(keyword), str))


def resolve(schema: object, reference: str) -> object:
    """The schema that a pointer into this very schema means; other references would have to be fetched.

    Raises:
        SchemaUnusable
    """
    shown = repr(reference[:100])
    if not reference.startswith("#"):
        raise SchemaUnusable(f"the reference {shown} leads out of it")
    if reference != "#" and not reference.startswith("#/"):
        raise SchemaUnusable(f"the reference {shown} names an anchor; write a pointer, as '#/$defs/NAME'")
    node = schema
    for key in _keys(reference):
        if isinstance(node, Mapping) and key in node:
            node = node[key]
        elif isinstance(node, list) and key in map(str, range(len(node))):
            node = node[int(key)]
        else:
            raise SchemaUnusable(f"the reference {shown} leads nowhere")
    if not isinstance(node, Mapping | bool):
        raise SchemaUnusable(f"the reference {shown} does not point to a schema")
    return node


def canonical(reference: str) -> str:
    """The reference as the library names the part of the schema."""
    return below("#", *_keys(reference))


def below(pointer: str, *keys: str | int) -> str:
    """The pointer to a part of the schema at a pointer."""
    return "/".join([pointer, *(str(key).replace("~", "~0").replace("/", "~1") for key in keys)])


def _keys(reference: str) -> Iterator[str]:
    # Decoded before it is split: RFC 6901, section 6, and the library does the same.
    return (part.replace("~1", "/").replace("~0", "~") for part in unquote(reference).split("/")[1:])


def schemas_in(schema: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The schemas right inside a schema, each with the keyword that it stands under."""
    for keyword, value in schema.items():
        if keyword in PLAIN_VALUES:
            continue
        if keyword in _NAMED_SCHEMAS and isinstance(value, Mapping):
            items: Iterable[object] = value.values()
        else:
            items = value if isinstance(value, list) else [value]
        yield from ((keyword, item) for item in items)


def rewritten(node: object, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Any:  # noqa: ANN401 - JSON
    """A copy of a schema in which each schema is changed, the innermost first."""
    if isinstance(node, list):
        return [rewritten(item, change) for item in node]
    if not isinstance(node, Mapping):
        return node
    copy: dict[str, Any] = {}
    for key, value in node.items():
        if key in PLAIN_VALUES:
            copy[key] = value
        elif key in _NAMED_SCHEMAS and isinstance(value, Mapping):
            copy[key] = {name: rewritten(item, change) for name, item in value.items()}
        else:
            copy[key] = rewritten(value, change)
    return change(copy)


def embedded(own: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The schema as it must read below ``properties/NAME``: its local references start there now."""
    escaped = quote(name.replace("~", "~0").replace("/", "~1"), safe="~")

    def moved(part: Mapping[str, Any]) -> Mapping[str, Any]:
        copy = {key: value for key, value in part.items() if key != "$schema"}
        for keyword in REFERENCES:
            if isinstance(reference := part.get(keyword), str):
                copy[keyword] = f"#/properties/{escaped}{reference[1:]}"
        return copy

    return dict(rewritten(own, moved))


# How large a schema is for a check: its references followed, its patterns compiled.
#
# A step is about 25 ns of the library's work (jsonschema-rs 0.60.3).

_MAX_STEPS = 100_000
"""Of a schema: with more, no value of a useful size could be checked."""
_MAX_SCHEMAS = 5_000
"""With every reference followed: references that double could keep a processor busy for hours."""
_MAX_PATTERN_LENGTH = 2_000
_PATTERN_SIZES = (1_000, 5_000, 20_000, 100_000, 500_000)
"""Bytes of a compiled pattern; ``^[A-Z]{2}\\d+$`` needs 500, ``^.{1,50}$`` 100,000."""
MAX_PATTERN_SIZE = _PATTERN_SIZES[-1]
_FOR_THE_SAME_VALUE = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)
"""Keywords whose schemas go no level deeper into the value."""
_ONE_OF_THEM = frozenset({"properties", "prefixItems"})
"""Keywords of whose schemas each part of a value meets one."""
_TOO_LARGE = "too large once its references are followed"
_STEPS = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "uniqueItems"), 40),
    "multipleOf": 160,
    "pattern": 20,
}
"""Of the keywords that cost more than one."""
_STEPS_OF_OPTION = 70
_UNEVALUATED = 4
"""How many times the library walks what is beside ``unevaluatedProperties`` or ``unevaluatedItems``."""


@dataclass
class Size:
    """What ``measured`` adds up."""

    steps: int = 0
    """For each part of a value, at most."""
    branches: int = 1
    """Of the choice that has most of them."""
    pattern_bytes: int = 0
    name_pattern_bytes: int = 0
    is_recursive: bool = False
    has_unique_items: bool = False


def measured(schema: Mapping[str, Any]) -> Size:
    """The size of a schema.

    Raises:
        SchemaUnusable: a reference leads nowhere, or in a circle for the same value; a pattern cannot be used; or the
            schema is too large once its references are followed.
    """
    walk = _Walk(schema)
    walk.size.steps = walk.add(schema, frozenset(), frozenset())
    if walk.size.steps > _MAX_STEPS:
        raise SchemaUnusable(_TOO_LARGE)
    walk.size.pattern_bytes = sum(map(pattern_size, walk.patterns))
    walk.size.name_pattern_bytes = sum(map(pattern_size, walk.name_patterns))
    return walk.size


@lru_cache(maxsize=1_000)
def pattern_size(pattern: str) -> int:
    """Bytes of a compiled pattern, at most; one with look-around or backreferences counts as the largest.

    Raises:
        SchemaUnusable: it is not a regular expression, or too large to match in bounded time.
    """
    if len(pattern) <= _MAX_PATTERN_LENGTH:
        for size in _PATTERN_SIZES:
            if _compiles(pattern, RegexOptions(size)):
                return size
        if _compiles(pattern, FancyRegexOptions(size_limit=MAX_PATTERN_SIZE)):
            return MAX_PATTERN_SIZE
    raise SchemaUnusable(f"the pattern {pattern[:100]!r} is not a regular expression, or too large")


def _compiles(pattern: str, options: RegexOptions | FancyRegexOptions) -> bool:
    try:
        validator_for({"pattern": pattern}, pattern_options=options)
    except ValueError:
        return False
    return True


class _Walk:
    """Follows each reference once on every way through a schema."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.size = Size()
        self.patterns: set[str] = set()
        self.name_patterns: set[str] = set()
        self._root = root
        self._schemas = 0

    def add(self, node: object, path: frozenset[str], here: frozenset[str]) -> int:
        """Steps of a schema; ``path`` are the references on the way to it, those in ``here`` are for the same value."""
        self._schemas += 1
        if self._schemas > _MAX_SCHEMAS:
            raise SchemaUnusable(_TOO_LARGE)
        if not isinstance(node, Mapping):
            return 1
        steps, one_of_them = self._own(node), 0
        for reference in references_of(node):
            if reference in here:
                raise SchemaUnusable(f"the reference {reference[:100]!r} leads in a circle")
            target = resolve(self._root, reference)
            self.size.is_recursive |= reference in path
            if reference not in path:
                steps += self.add(target, path | {reference}, here | {reference})
        for keyword, item in schemas_in(node):
            if keyword in _ONE_OF_THEM:
                one_of_them = max(one_of_them, self.add(item, path, frozenset()))
            elif keyword not in {"$defs", "definitions"}:
                steps += self.add(item, path, here if keyword in _FOR_THE_SAME_VALUE else frozenset())
        is_walked_again = "unevaluatedProperties" in node or "unevaluatedItems" in node
        return (steps + one_of_them) * (_UNEVALUATED if is_walked_again else 1)

    def _own(self, schema: Mapping[str, Any]) -> int:
        """Steps of a schema without the schemas in it."""
        for keyword in ("anyOf", "oneOf"):
            if isinstance(branches := schema.get(keyword), list):
                self.size.branches = max(self.size.branches, len(branches))
        if isinstance(pattern := schema.get("pattern"), str):
            self.patterns.add(pattern)
        if isinstance(patterns := schema.get("patternProperties"), Mapping):
            self.name_patterns |= patterns.keys()
        self.size.has_unique_items |= "uniqueItems" in schema
        required = schema.get("required")
        steps = 1 + sum(_STEPS.get(keyword, 1) for keyword in schema)
        steps += len(required) if isinstance(required, list) else 0
        return steps + _options(schema.get("enum")) + _options([schema["const"]] if "const" in schema else None)


def _options(options: object) -> int:
    """Steps of a comparison with each option; texts and whole numbers are looked up."""
    if not isinstance(options, list) or {type(each) for each in options} <= {str, int, bool, type(None)}:
        return 2
    return _STEPS_OF_OPTION * _nodes(options)


def _nodes(value: object) -> int:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return 1 + sum(map(_nodes, inner))


# Whether a value satisfies a JSON Schema. ``jsonschema-rs`` decides.
#
# A call of that library cannot be interrupted, and every session of the process waits for it. So the size of a schema
# is limited, and so is the size of a schema times the size of a value: above it a value stays unchecked.

MAX_SCHEMAS = 4_096
"""Schemas that are kept ready; nodes with 600 tools have been seen."""
MAX_STEPS = 4_000_000
"""For one call of the library: 0.1 s, measured with jsonschema-rs 0.60.3. ``measure.py`` counts the steps."""
_MAX_PATTERN_BYTES = 400_000_000
"""Bytes of compiled patterns times characters of a value: 0.1 s, with 0.25 ns each for the worst pattern known."""
_MAX_TEXT_LENGTH = 400_000
"""Characters of a schema as JSON; the library reads them in 0.05 s."""
_MAX_DETAIL = 10_000_000
"""Characters that the library may copy into its errors: 0.05 s."""
_MAX_DETAILED_PARTS = 5_000
"""Parts of a value for which the library may write errors: 0.05 s."""
_DIALECTS = frozenset(
    {
        *(f"http://json-schema.org/draft-0{number}/schema" for number in (4, 6, 7)),
        *(f"https://json-schema.org/draft/{name}/schema" for name in ("2019-09", "2020-12")),
    }
)
_UNUSED = frozenset(
    {"$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"}
    | {"contentEncoding", "contentMediaType", "contentSchema"}
)
"""Keywords that the library does not see: they would name other places to look in, or check what is inside texts."""
_LARGE_INTEGER = re.compile(rb"\d{18}")


class Unchecked(Exception):  # noqa: N818 - says what happened
    """The value was not checked: it is too large for its schema, or the library cannot read it."""


class Problem(NamedTuple):
    """What is wrong with a value."""

    place: tuple[str | int, ...]
    """Where, from the value that was checked."""
    predicate: str
    """What is said of that place: "must be a number, got null"; after a colon where it is not a predicate."""


@dataclass(frozen=True, eq=False)
class Check:
    """Tells whether values satisfy a schema."""

    schema: Mapping[str, Any]
    _read: Mapping[str, Any]
    """The schema as the library reads it."""
    _size: Size
    _validators: ValidatorMap
    more: Callable[[Any], Iterable[Problem]] = lambda _value: ()
    """What JSON Schema cannot say."""

    def is_satisfied_by(self, value: object) -> bool:
        """Whether a value satisfies the whole schema, and what JSON Schema cannot say.

        Raises:
            Unchecked
        """
        return self.accepts(value) and not any(True for _ in self.more(value))

    def accepts(self, value: object, pointer: str = "#") -> bool:
        """Whether a value satisfies the part of the schema at a JSON pointer.

        Raises:
            Unchecked
        """
        self.steps(value)
        validator = self._validators_for(value).get(pointer)
        if validator is None:
            raise Unchecked
        try:
            return validator.is_valid(value)
        except ValueError:  # half a surrogate pair
            raise Unchecked from None

    def errors(self, value: object) -> list[ValidationError]:
        """The library's errors; none where the value is too large for them. They hold copies of the value."""
        text = to_json(value)
        if _parts(value, text) > _MAX_DETAILED_PARTS:
            return []
        ways = self._size.branches ** _depth(value) if self._size.is_recursive else 1
        if len(text) * self._size.steps * ways > _MAX_DETAIL:
            return []
        return list(self._validators_for(value)["#"].iter_errors(value))

    def stricter(self, more: Callable[[Any], Iterable[Problem]]) -> "Check":
        """The same check with one more rule, beside those that it has."""
        return replace(self, more=lambda value: chain(self.more(value), more(value)))

    def steps(self, value: object) -> int:
        """The size of a check of this value.

        Raises:
            Unchecked: it is too large.
        """
        try:
            text = to_json(value)
        except ValueError:  # half a surrogate pair
            raise Unchecked from None
        steps = self._size.steps * _parts(value, text)
        if self._size.has_unique_items:
            # Integers beyond 64 bits have one hash, so each of them is compared with each.
            steps += 40 * len(_LARGE_INTEGER.findall(text)) ** 2
        if steps > MAX_STEPS or self._size.name_pattern_bytes * len(text) > _MAX_PATTERN_BYTES:
            raise Unchecked
        return steps

    def _validators_for(self, value: object) -> ValidatorMap:
        """Values too long for the patterns of the schema are checked without them."""
        is_long = self._size.pattern_bytes and self._size.pattern_bytes * len(to_json(value)) > _MAX_PATTERN_BYTES
        return self._without_patterns if is_long else self._validators

    @cached_property
    def _without_patterns(self) -> ValidatorMap:
        return _compiled(rewritten(self._read, lambda part: {key: part[key] for key in part if key != "pattern"}))


def check_of(schema: Mapping[str, Any]) -> Check:
    """The check of values against a schema.

    Raises:
        SchemaUnusable: it is not a JSON Schema, a reference leads out of it or in a circle, a pattern cannot be used,
            or it is too large.
    """
    if not isinstance(schema.get("$schema", ""), str):
        raise SchemaUnusable("its $schema must be a text")
    try:
        return _check_of(json.dumps(schema))
    except RecursionError:
        raise SchemaUnusable("nested too deeply") from None


@lru_cache(maxsize=MAX_SCHEMAS)
def _check_of(text: str) -> Check:
    """The check of a schema, given as JSON; kept, since a node's tools are the same in every run."""
    give_way()  # It takes some time, and a node may have hundreds of tools.
    if len(text) > _MAX_TEXT_LENGTH:
        raise SchemaUnusable(f"longer than {_MAX_TEXT_LENGTH:,} characters")
    schema = json.loads(text)
    size = measured(schema)
    read = rewritten(schema, lambda part: {key: part[key] for key in part if key not in _UNUSED})
    if (dialect := schema.get("$schema", "").removesuffix("#")) in _DIALECTS:
        read = {"$schema": dialect, **read}
    return Check(schema, read, size, _compiled(read))


def _compiled(schema: Mapping[str, Any]) -> ValidatorMap:
    patterns = FancyRegexOptions(backtrack_limit=10_000, size_limit=MAX_PATTERN_SIZE)
    try:
        validators = validator_map_for(dict(schema), validate_formats=False, pattern_options=patterns, offline=True)
    except ValueError as error:
        reason = str(error).partition("\n")[0][:200]
        raise SchemaUnusable(f"not valid JSON Schema ({reason})") from None
    if "#" not in validators:  # The map leaves out what it cannot compile.
        raise SchemaUnusable("not valid JSON Schema")
    return validators


def _parts(value: object, text: bytes) -> int:
    """Parts of a value, at most, counted in its JSON text."""
    if isinstance(value, str):
        return 1
    return 1 + text.count(b",") + text.count(b":") + text.count(b"[") + text.count(b"{")


def _depth(value: object) -> int:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0)


# Arguments converted to the types that a schema asks for, where nothing is lost by it.
#
# ``"7"`` becomes 7, the JSON text of an array the array, and null for something optional is left out. Among
# alternatives the first one is chosen that the result satisfies; what fits nowhere stays as it is.

_FITTING_MAX_STEPS = 20_000_000
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
    left: int = _FITTING_MAX_STEPS
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


# What is wrong with an argument, as sentences for the model, from the library's errors.

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


# What authors of tools, or Dify on the way, got wrong in a parameter's schema.

_REMARKS = frozenset({"title", "description", "$comment", "$defs", "definitions", "$schema"})
"""Keywords that check nothing."""


def repaired(own: Mapping[str, Any], note: Note) -> dict[str, Any]:
    """A parameter's schema without what no check could follow, and a note on each such place.

    Dify drops ``$defs`` of MCP servers, so that references lead nowhere. Options at an array are meant for its items.

    Raises:
        SchemaUnusable: nothing is left of it.
    """
    try:
        schema, notes = _repaired(json.dumps(own))
    except RecursionError:
        raise SchemaUnusable("nested too deeply") from None
    for each in notes:
        note(each)
    return schema


@lru_cache(maxsize=MAX_SCHEMAS)
def _repaired(text: str) -> tuple[dict[str, Any], tuple[Sentence, ...]]:
    """Kept, since a node's tools are the same in every run."""
    own, notes = json.loads(text), list[Sentence]()
    schema = rewritten(own, lambda part: _with_options_of_items(_checkable(part, own, notes.append)))
    if not schema.keys() - _REMARKS:
        raise SchemaUnusable("; ".join([*notes, "nothing is left of it"]))
    return schema, tuple(notes)


def _checkable(part: Mapping[str, Any], root: Mapping[str, Any], note: Note) -> Mapping[str, Any]:
    """The part without references that cannot be followed and patterns that cannot be matched."""
    lost = []
    for keyword in (*REFERENCES, "pattern"):
        if isinstance(said := part.get(keyword), str):
            try:
                _ = pattern_size(said) if keyword == "pattern" else resolve(root, said)
            except SchemaUnusable as reason:
                note(Quoting(f"nothing is checked there: {reason}"))
                lost.append(keyword)
    return {key: value for key, value in part.items() if key not in lost} if lost else part


def _with_options_of_items(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part with options that stand at an array, and are not arrays, at its items."""
    options, kinds, items = part.get("enum"), {*names_of_type(part)}, part.get("items")
    if not (isinstance(options, list) and options and "array" in kinds and kinds <= {"array", "null"}):
        return part
    if any(isinstance(option, list | dict) for option in options):
        return part
    meant = {"enum": [option for option in options if option is not None or "null" not in kinds]}
    inside = {**meant, **items} if isinstance(items, Mapping) else meant
    return {**{key: value for key, value in part.items() if key != "enum"}, "items": inside}
