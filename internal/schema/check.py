"""Whether a value satisfies a JSON Schema. ``jsonschema-rs`` decides.

A call of that library cannot be interrupted, and every session of the process waits for it. So the size of a schema is
limited, and so is the size of a schema times the size of a value: above it a value stays unchecked.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, NamedTuple

from jsonschema_rs import FancyRegexOptions, ValidationError, ValidatorMap, validator_map_for
from pydantic_core import to_json

from internal.schema.measure import MAX_PATTERN_SIZE, Size, measured
from internal.schema.references import SchemaUnusable, rewritten
from internal.text.fairness import give_way

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
