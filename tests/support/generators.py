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
"""Any text as it is once it has come in."""

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


small_values = json_values | st.integers(-2, 3) | st.sampled_from([0.5, "", "a", [], [1], {"a": 1}, {"a": "a"}])
_types = st.sampled_from(["string", "integer", "number", "array", "object", "null", ["string", "integer"]])
_bounds = st.integers(-2, 3) | st.sampled_from([0.5, 1.5])
_names = st.lists(st.sampled_from("ab"), unique=True)
_plain: dict[str, st.SearchStrategy[Any]] = {
    "type": _types,
    "enum": st.lists(small_values, max_size=3),
    "required": _names,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _bounds),
    **{f"{side}{what}": st.integers(0, 2) for side in ("min", "max") for what in ("Length", "Items", "Properties")},
}


def _around(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "properties": st.dictionaries(st.sampled_from("ab"), parts, max_size=2),
        "required": _names,
        "pattern": st.sampled_from(["a", "^$"]),
        "uniqueItems": st.booleans(),
        "type": _types,
        **dict.fromkeys(("additionalProperties", "items", "not", "if", "then", "propertyNames"), parts),
        **dict.fromkeys(("allOf", "anyOf", "oneOf"), st.lists(parts, min_size=1, max_size=2)),
    }
    return st.fixed_dictionaries({}, optional=keywords)


_parts: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries({}, optional=_plain) | st.booleans(), _around, max_leaves=6
)
small_schemas: st.SearchStrategy[dict[str, Any]] = _parts.filter(lambda schema: isinstance(schema, dict))
"""JSON Schemas that many of ``small_values`` satisfy and many do not."""
