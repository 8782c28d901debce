"""Text and JSON that every reader and writer on the way takes."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from internal.wellformed import has_lone_surrogate, plain_json, wellformed
from tests.unit.generators import any_text

odd_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text | st.decimals(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(any_text | st.integers(), children, max_size=3),
    max_leaves=8,
)


@given(any_text)
@settings(deadline=None)
def test_well_formed_text_can_be_written_and_keeps_its_length(text: str) -> None:
    written = wellformed(text)

    assert written.encode().decode() == written
    assert len(written) == len(text)
    assert not has_lone_surrogate(written)
    assert has_lone_surrogate(text) or written == text


@given(odd_json)
@settings(deadline=None)
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
        (Decimal("1.50"), "1.50"),
        (None, None),
    ],
    ids=repr,
)
def test_what_json_lacks_becomes_what_comes_nearest(value: object, expected: object) -> None:
    assert plain_json(value) == expected
