"""Text and JSON that every reader and writer on the way takes."""

import json
import math
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.text.wellformed import has_lone_surrogate, plain_json, wellformed, wellformed_text_of_json
from tests.unit.generators import any_text

odd_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text | st.decimals(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(any_text | st.integers(), children, max_size=3),
    max_leaves=8,
)


@given(any_text)
def test_well_formed_text_can_be_written_and_loses_nothing_but_nul(text: str) -> None:
    written = wellformed(text)

    assert written.encode().decode() == written
    assert len(written) == len(text.replace("\0", ""))
    assert not has_lone_surrogate(written)
    assert has_lone_surrogate(text) or written == text.replace("\0", "")


@given(odd_json)
def test_plain_json_can_be_written_and_read_back_unchanged(value: object) -> None:
    plain = plain_json(value)

    text = json.dumps(plain, ensure_ascii=False, allow_nan=False)
    assert json.loads(text.encode()) == plain


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**53, 2**53),
        (2**53 + 1, str(2**53 + 1)),
        (-(2**60), str(-(2**60))),
        (True, True),
        (float("nan"), None),
        (float("inf"), None),
        (1.5, 1.5),
        (("a", {"b"}), ["a", ["b"]]),
        ({1: "\ud83d"}, {"1": "?"}),
        ({None: {"\0a": "b\0"}}, {"None": {"a": "b"}}),
        ({"\ud83d": {"\0a": ["b\0", math.nan, {1}]}}, {"?": {"a": ["b", None, [1]]}}),
        ("\0", ""),
        (["\\u0000 \\\0 \\\\u0000"], ["\\u0000 \\ \\\\u0000"]),
        (
            [{"id": 12345678901234567890}, "12345678901234567890", 1e30],
            [{"id": "12345678901234567890"}, "12345678901234567890", 1e30],
        ),
        ([float("nan"), -float("inf"), "NaN"], [None, None, "NaN"]),
        (MappingProxyType({"a": frozenset({1})}), {"a": [1]}),
        (Decimal("1.50"), "1.50"),
        (None, None),
    ],
    ids=repr,
)
def test_what_json_lacks_becomes_what_comes_nearest(value: object, expected: object) -> None:
    assert plain_json(value) == expected


@given(st.text(st.sampled_from('\\u0{}"a'), max_size=20))
def test_the_text_of_json_without_nul_says_what_it_said(text: str) -> None:
    said = {text: ["\0", text]}

    assert json.loads(wellformed_text_of_json(json.dumps(said))) == {text: ["", text]}
    assert "\0" not in wellformed_text_of_json(text)


def test_large_json_is_not_walked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call of ours for each of a million values would hold up every session."""
    parsed: list[str] = []

    def counted(text: str) -> str:
        parsed.append(text)
        return text

    monkeypatch.setattr("internal.text.wellformed.wellformed", counted)

    plain_json([{"a": number, "b": str(number)} for number in range(1_000)])

    assert len(parsed) <= 1
