"""Text and JSON that the wire and the database take."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.text.texts import has_lone_surrogate, wellformed, wellformed_json, without_escaped_nul
from tests.unit.generators import any_text

json_with_any_text: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | any_text,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(any_text, children, max_size=3),
    max_leaves=8,
)


@given(any_text)
def test_well_formed_text_can_be_written_and_loses_nothing_but_nul(text: str) -> None:
    written = wellformed(text)

    assert written.encode().decode() == written
    assert len(written) == len(text.replace("\0", ""))
    assert not has_lone_surrogate(written)
    assert has_lone_surrogate(text) or written == text.replace("\0", "")


def each_text_well_formed(value: object) -> object:
    """What ``wellformed_json`` should make of a value, text by text."""
    if isinstance(value, dict):
        return {wellformed(name): each_text_well_formed(item) for name, item in value.items()}
    if isinstance(value, list):
        return [each_text_well_formed(item) for item in value]
    return wellformed(value) if isinstance(value, str) else value


@given(json_with_any_text)
def test_every_text_and_name_of_a_json_value_becomes_well_formed(value: object) -> None:
    assert wellformed_json(value) == each_text_well_formed(value)


@pytest.mark.parametrize(
    "value", ["é", 2**70, -0.5, None, True, {"a": ["b", {"é": 1e300}]}, ["😀"], {"a": "\\"}], ids=repr
)
def test_a_well_formed_value_is_not_copied(value: object) -> None:
    assert wellformed_json(value) is value


@given(st.text(st.sampled_from('\\u0{}"a'), max_size=20))
def test_json_text_loses_escaped_nul_only(text: str) -> None:
    said = {text: ["\0", text]}

    assert json.loads(without_escaped_nul(json.dumps(said))) == {text: ["", text]}
    assert "\0" not in without_escaped_nul(text)
