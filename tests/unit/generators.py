"""Hypothesis strategies that several unit tests draw from, and how texts are cut into chunks."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from internal.text.texts import wellformed

readable_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
"""Any text that can be written as UTF-8."""

any_text = st.text(max_size=20) | st.text(st.sampled_from('a?\0\ud83d\ude00é{}[]"\\'), max_size=20)
"""Lone surrogates and NUL among it."""
text_from_the_host = any_text.map(wellformed)
"""Any text as it is behind the door (``host.wire``, ``node.params``)."""

finite_numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)


def _containers(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(children, max_size=3) | st.dictionaries(readable_text, children, max_size=3)


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | finite_numbers | readable_text, _containers, max_leaves=8
)
json_objects: st.SearchStrategy[dict[str, Any]] = st.dictionaries(readable_text, json_values, max_size=4)


def cut(text: str, positions: Iterable[int]) -> list[str]:
    """The text in pieces, cut at these positions (those beyond its end cut nothing)."""
    borders = [0, *sorted({position for position in positions if 0 < position < len(text)}), len(text)]
    return [text[start:end] for start, end in pairwise(borders)]


def cut_lists(longest: int = 400) -> st.SearchStrategy[list[int]]:
    """Where to cut a text."""
    return st.lists(st.integers(1, longest), max_size=12)


def joined(parts: Sequence[str]) -> st.SearchStrategy[str]:
    """Texts put together from these parts."""
    return st.lists(st.sampled_from(parts), max_size=14).map("".join)


_bounds = st.integers(-2, 3) | st.sampled_from([0.5, 1.5])
_sizes = st.integers(0, 2)
small_values = json_values | st.integers(-2, 3) | st.sampled_from([0.5, "", "a", [], [1], {"a": 1}, {"a": "a"}])
_parts: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "integer", "number", "array", "object", "null", ["string", "integer"]]),
            "enum": st.lists(small_values, max_size=3),
            "minimum": _bounds,
            "maximum": _bounds,
            "exclusiveMinimum": _bounds,
            "exclusiveMaximum": _bounds,
            "minLength": _sizes,
            "maxLength": _sizes,
            "minItems": _sizes,
            "maxItems": _sizes,
            "minProperties": _sizes,
            "maxProperties": _sizes,
            "required": st.lists(st.sampled_from("ab"), unique=True),
        },
    )
    | st.booleans(),
    lambda parts: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("ab"), parts, max_size=2),
            "additionalProperties": parts,
            "required": st.lists(st.sampled_from("ab"), unique=True),
            "items": parts,
            "minItems": _sizes,
            "not": parts,
            "if": parts,
            "then": parts,
            "propertyNames": parts,
            "pattern": st.sampled_from(["a", "^$"]),
            "uniqueItems": st.booleans(),
            "allOf": st.lists(parts, min_size=1, max_size=2),
            "anyOf": st.lists(parts, min_size=1, max_size=2),
            "oneOf": st.lists(parts, min_size=1, max_size=2),
            "type": st.sampled_from(["array", "object", "string"]),
        },
    ),
    max_leaves=6,
)
small_schemas: st.SearchStrategy[dict[str, Any]] = _parts.filter(lambda schema: isinstance(schema, dict))
"""JSON Schemas that many of ``small_values`` satisfy and many do not."""
