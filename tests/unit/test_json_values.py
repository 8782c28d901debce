"""The visitor for JSON values, pointers into them, and numbers that the host keeps."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.json_values import (
    MAX_EXACT_INTEGER,
    holds_large_integer,
    members,
    part_of,
    read_exactly,
    rebuilt,
    scalars,
    unescaped,
)

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
)


@given(VALUES)
def test_a_rebuilt_value_without_a_change_is_equal_and_shares_no_container(value: object) -> None:
    copy = rebuilt(value, lambda each, _name: each)

    assert copy == value
    if isinstance(value, dict | list):
        assert copy is not value


@given(VALUES)
def test_the_scalars_are_those_that_a_change_meets(value: object) -> None:
    met = list[object]()

    def change(each: object, _name: str) -> object:
        if not isinstance(each, dict | list):
            met.append(each)
        return each

    rebuilt(value, change)
    assert met == list(scalars(value))


def test_a_change_reads_the_nearest_name_and_what_it_puts_in_is_not_visited() -> None:
    seen = list[tuple[str, object]]()

    def change(each: object, name: str) -> object:
        seen.append((name, each))
        if name == "b":
            return ["new"]
        return each

    assert rebuilt({"a": [1, (2,)], "b": {"c": 3}}, change) == {"a": [1, (2,)], "b": ["new"]}
    assert [(name, each) for name, each in seen if isinstance(each, int)] == [("a", 1), ("a", 2)]
    assert ("c", 3) not in seen


def test_members_are_those_of_every_object() -> None:
    value = {"a": [{"b": 1}, ({"c": {"d": 2}},)]}

    assert [name for name, _ in members(value)] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("pointer", "part"),
    [("", {"a/b": {"~": [5, 6]}}), ("/a~1b", {"~": [5, 6]}), ("/a~1b/~0/1", 6)],
)
def test_a_pointer_leads_to_a_part(pointer: str, part: object) -> None:
    value: object = {"a/b": {"~": [5, 6]}}
    for token in pointer.split("/")[1:]:
        value = part_of(value, unescaped(token))

    assert value == part


@pytest.mark.parametrize("token", ["2", "-1", "01", "-", "x", "", "9" * 30])
def test_a_part_that_is_not_there_is_an_error(token: str) -> None:
    with pytest.raises(LookupError):
        part_of([1, 2], token)
    with pytest.raises(LookupError):
        part_of({"y": 1}, token)


@given(VALUES)
def test_an_integer_is_large_exactly_when_reading_turns_it_into_a_text(value: object) -> None:
    text = json.dumps(value)

    assert holds_large_integer(value) == (read_exactly(text) != value)


@pytest.mark.parametrize(("number", "is_large"), [(MAX_EXACT_INTEGER, False), (-MAX_EXACT_INTEGER - 1, True)])
def test_the_largest_exact_integer_is_not_rounded(number: int, is_large: bool) -> None:  # noqa: FBT001 - a parameter
    assert holds_large_integer({"n": [number]}) is is_large
