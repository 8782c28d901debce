"""How long a check of a value against a schema takes at most.

In: a schema. Out: steps for each part of a value; or SchemaUnusable where a check would not end. A step is about 25 ns
of the library's work; the numbers below were measured with jsonschema-rs 0.60.3. It checks a schema behind a reference
that is recursive at most once for each part of a value, so that no choices within choices double its work.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from internal.schema.patterns import compiled
from internal.schema.references import SchemaUnusable, references_of, resolve, schemas_in
from internal.text.fairness import in_turns
from internal.tooling import MAX_NESTING

MAX_EXPANSION = 5_000
"""Schemas when every reference is followed: doubling references could keep a processor busy for hours."""
_MAX_WEIGHT = 100_000
"""Steps for one part of a value: with more, no value of a useful size could be checked."""
_MAX_CHAIN_LENGTH = 50
"""References that may lead from one to the next."""
_FOR_THE_SAME_VALUE = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)
"""Keywords whose schemas go no level deeper into the value."""
_ONE_OF_THEM = frozenset({"properties", "prefixItems"})
"""Keywords of whose schemas each part of a value meets one."""
_NUMBER_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_UNEVALUATED = 4
"""How many times the library walks what stands beside ``unevaluatedProperties`` or ``unevaluatedItems``."""
_MAX_PATTERNS = 500
"""Different ones; the library needs up to 3 ms to find out that one is too large."""
_LARGE_INTEGER = re.compile(rb"\d{18}")


@dataclass(frozen=True)
class Weight:
    """What a check costs."""

    size: int
    """Schemas, each reference followed once."""
    steps: int
    """For each part of a value."""
    letter_steps: int
    """For each character of a value's JSON text."""
    has_unique_items: bool

    def of(self, value: object) -> int:
        """Steps that a check of the value takes at most.

        Raises:
            ValueError: the value cannot be written as JSON, because it holds half a surrogate pair.
        """
        if isinstance(value, str):
            return self.steps + self.letter_steps * len(value)
        if not isinstance(value, dict | list | int):
            return self.steps
        text = to_json(value)
        parts = 1 + text.count(b",") + text.count(b":") + text.count(b"[") + text.count(b"{")
        # Integers beyond 64 bits have one hash, and each of them is compared with each.
        large = len(_LARGE_INTEGER.findall(text)) if self.has_unique_items else 0
        return self.steps * parts + self.letter_steps * len(text) + 40 * large * large


def weigh(schema: Mapping[str, Any]) -> Weight:
    """The cost of checks against a schema.

    Raises:
        SchemaUnusable: a reference leads nowhere, or back to itself for the same value; or it grows without measure.
    """
    scale = _Scale(schema)
    here, inside = scale.weigh(schema, frozenset(), frozenset())
    steps = max(here, inside) + scale.for_values_within
    if scale.is_recursive:
        steps = max(here, inside, scale.total) * _UNEVALUATED ** scale.nested_walks()
        steps += scale.for_values_within * MAX_NESTING
    if steps > _MAX_WEIGHT:
        raise SchemaUnusable("too large once its references are followed")
    return Weight(scale.size, steps, scale.letter_steps + _weigh_patterns(scale), scale.has_unique_items)


def _weigh_patterns(scale: "_Scale") -> int:
    """Compile all patterns; return the steps for each character of a name.

    Raises:
        SchemaUnusable: one is not a regular expression, or cannot match names in bounded time; or they are too many.
    """
    if len(scale.patterns | scale.name_patterns) > _MAX_PATTERNS:
        raise SchemaUnusable(f"it has more than {_MAX_PATTERNS} patterns")
    for pattern in in_turns(scale.patterns):
        compiled(pattern)
    steps = 0
    for pattern in in_turns(scale.name_patterns):
        if not (size := compiled(pattern).size):
            raise SchemaUnusable(f"names cannot be matched with the pattern {pattern[:100]!r}")
        steps += size // 100
    return steps


class _Scale:
    """Adds up what one schema costs."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.size = self.total = self.letter_steps = self.for_values_within = 0
        self.is_recursive = self.has_unique_items = False
        self.patterns: set[str] = set()
        self.name_patterns: set[str] = set()
        self._root = root
        self._walking: list[Mapping[str, Any]] = []
        """Schemas with ``unevaluatedProperties`` or ``unevaluatedItems``."""

    def weigh(self, node: object, path: frozenset[str], here_by: frozenset[str]) -> tuple[int, int]:
        """Steps for the value itself, and at most for one part of it.

        ``path`` are the references on the way to the node; those in ``here_by`` speak of the same value as the node.
        """
        self.size += 1
        if self.size > MAX_EXPANSION:
            raise SchemaUnusable("too large once its references are followed")
        if not isinstance(node, Mapping):
            return 1, 0
        here, inside, one_of_them = self._own(node), 0, 0
        for reference in references_of(node):
            if self._leads_on(reference, path, here_by):
                target = resolve(self._root, reference)
                more, deeper = self.weigh(target, path | {reference}, here_by | {reference})
                here, inside = here + more, inside + deeper
        for keyword, item in schemas_in(node):
            if keyword in {"$defs", "definitions"}:
                continue
            is_here = keyword in _FOR_THE_SAME_VALUE
            more, deeper = self.weigh(item, path, here_by if is_here else frozenset())
            if is_here:
                here, inside = here + more, inside + deeper
            elif keyword in _ONE_OF_THEM:
                one_of_them = max(one_of_them, more, deeper)
            else:
                inside += max(more, deeper)
        inside += one_of_them
        if _walks(node):
            self._walking.append(node)
            return here * _UNEVALUATED, inside * _UNEVALUATED
        return here, inside

    def _leads_on(self, reference: str, path: frozenset[str], here_by: frozenset[str]) -> bool:
        """Whether the reference is to be followed; one into itself is followed once.

        Raises:
            SchemaUnusable: no check of it would end.
        """
        if reference in here_by:
            raise SchemaUnusable(f"the reference {reference[:100]!r} leads in a circle")
        if len(here_by) == _MAX_CHAIN_LENGTH:
            raise SchemaUnusable(f"more than {_MAX_CHAIN_LENGTH} references lead from one to the next")
        if reference in path:
            resolve(self._root, reference)
            self.is_recursive = True
        return reference not in path

    def nested_walks(self) -> int:
        """How many schemas with these keywords lie within each other at most, for the same value."""
        known: dict[int, int] = {}

        def within(node: object) -> int:
            if not isinstance(node, Mapping):
                return 0
            if id(node) not in known:
                inner = [item for keyword, item in schemas_in(node) if keyword in _FOR_THE_SAME_VALUE]
                inner += [resolve(self._root, reference) for reference in references_of(node)]
                known[id(node)] = _walks(node) + max(map(within, inner), default=0)
            return known[id(node)]

        return max(map(within, self._walking), default=0)

    def _own(self, schema: Mapping[str, Any]) -> int:
        """Steps of a schema's own keywords, without the schemas in it."""
        steps = 1 + len(schema) + 40 * len(_NUMBER_BOUNDS & schema.keys())
        if "enum" in schema:
            steps += _options(schema["enum"])
        if "const" in schema:
            steps += 40 + _options([schema["const"]])
        if "multipleOf" in schema:
            steps += 160
            self.letter_steps += 10
        if isinstance(pattern := schema.get("pattern"), str):
            steps += 20
            self.patterns.add(pattern)
            # Where the value may be no text, the library hands over a copy of all that is in it.
            self.for_values_within += 0 if schema.get("type") == "string" else 4
        if isinstance(patterns := schema.get("patternProperties"), Mapping):
            steps += 4 * len(patterns)
            self.name_patterns |= patterns.keys()
        if isinstance(required := schema.get("required"), list):
            steps += len(required)
        if "uniqueItems" in schema:
            self.for_values_within += 40
            self.has_unique_items = True
        self.total += steps
        return steps


def _walks(schema: Mapping[str, Any]) -> bool:
    return "unevaluatedProperties" in schema or "unevaluatedItems" in schema


def _options(options: object) -> int:
    """Steps of a comparison with each of the options; texts alone and integers alone are looked up."""
    kinds = {type(each) for each in options} - {bool, type(None)} if isinstance(options, list) else set()
    return 2 if kinds in (set(), {str}, {int}) else 70 * _nodes(options)


def _nodes(value: object) -> int:
    if isinstance(value, Mapping):
        return 1 + sum(map(_nodes, value.values()))
    return 1 + sum(map(_nodes, value)) if isinstance(value, list) else 1
