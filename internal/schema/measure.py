"""How large a schema is for a check: its references followed, its patterns compiled.

A step is about 25 ns of the library's work (jsonschema-rs 0.60.3).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jsonschema_rs import FancyRegexOptions, RegexOptions, validator_for

from internal.schema.references import SchemaUnusable, references_of, resolve, schemas_in

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
