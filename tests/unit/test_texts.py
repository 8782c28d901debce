"""Texts that the wire and the database take, and which part of a long one is kept and read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.text.secrets import Redactor
from internal.text.texts import (
    Excerpt,
    KeptText,
    cut_to_size,
    has_lone_surrogate,
    joined,
    wellformed,
    wellformed_json,
    without_escaped_nul,
)
from tests.unit.generators import any_text

json_with_any_text: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | any_text,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(any_text, children, max_size=3),
    max_leaves=8,
)
SECRET = "hunter2-hunter2"
LONGEST, TAIL = 200_000, 50_000


@given(any_text)
def test_well_formed_text_can_be_written_and_loses_nothing_but_nul(text: str) -> None:
    written = wellformed(text)

    assert written.encode().decode() == written
    assert len(written) == len(text.replace("\0", ""))
    assert has_lone_surrogate(text) or written == text.replace("\0", "")


@given(json_with_any_text)
def test_every_text_and_name_of_a_json_value_becomes_well_formed(value: object) -> None:
    def each(node: object) -> object:
        if isinstance(node, dict):
            return {wellformed(name): each(item) for name, item in node.items()}
        if isinstance(node, list):
            return [each(item) for item in node]
        return wellformed(node) if isinstance(node, str) else node

    assert wellformed_json(value) == each(value)


@pytest.mark.parametrize("value", ["é", 2**70, None, {"a": ["b", {"é": 1e300}]}, ["😀"], {"a": "\\"}], ids=repr)
def test_a_well_formed_value_is_not_copied(value: object) -> None:
    assert wellformed_json(value) is value


@given(st.text(st.sampled_from('\\u0{}"a'), max_size=20))
def test_json_text_loses_escaped_nul_only(text: str) -> None:
    said = {text: ["\0", text]}

    assert json.loads(without_escaped_nul(json.dumps(said))) == {text: ["", text]}
    assert "\0" not in without_escaped_nul(text)


def kept_of(text: str, size: int) -> KeptText:
    """A text that came in pieces of this size."""
    kept = KeptText(LONGEST, TAIL)
    for start in range(0, len(text), size):
        kept.add(text[start : start + size])
    return kept


@pytest.mark.parametrize("size", [7, 49_999, 100_000, 1_000_000])
@pytest.mark.parametrize("length", [0, 1, 100_001, LONGEST, LONGEST + 1, LONGEST + TAIL + 1, 777_777])
def test_of_a_text_beyond_the_limit_the_beginning_and_the_end_are_kept(length: int, size: int) -> None:
    text = ("0123456789\r\n" * length)[:length]
    kept = kept_of(text, size)
    shown = kept.excerpt(str)

    assert (kept.length, kept.last, kept.says_something) == (length, text[-1:], length > 0)
    assert len(kept.whole()) <= LONGEST
    if length <= LONGEST:
        assert shown == Excerpt(text)
        return
    head, _, rest = shown.text.partition("\n[… ")
    number, _, tail = rest.partition(" characters were not kept …]\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert min(len(head), len(tail)) >= TAIL - 20_000
    assert int(number) == length - len(head) - len(tail)
    assert len(shown.text) + shown.missing == length


@given(st.integers(99_900, 100_010), st.integers(-20, 20), st.sampled_from([1, 10, 1_000]))
def test_no_half_of_a_secret_is_left_at_a_gap(before: int, after: int, pieces: int) -> None:
    text = "m" * before + SECRET + "m" * 500_000 + SECRET + "m" * (TAIL + after)
    shown = kept_of(text, len(text) // pieces + 1).excerpt(Redactor.of([SECRET]).text).text

    assert not [end for end in range(4, len(SECRET)) if SECRET[:end] + "\n" in shown or "\n" + SECRET[-end:] in shown]
    assert SECRET not in shown


def test_parts_that_say_something_are_joined() -> None:
    assert joined([Excerpt("a", 1), Excerpt(" "), Excerpt("b", 2)]) == Excerpt("a\n\nb", 3)
    assert joined([]) == Excerpt("")


@given(st.text(min_size=1, max_size=20), st.integers(1, 200), st.integers(100, 300), st.sampled_from([0, 1_000_000]))
def test_a_cut_result_is_never_longer_than_the_limit_and_says_what_is_left_out(
    unit: str, times: int, limit: int, missing: int
) -> None:
    whole = unit * times
    result = cut_to_size(whole, limit, missing)

    assert len(result) <= limit
    if len(whole) <= limit:
        assert result == whole
        return
    head, _, rest = result.partition("\n[… ")
    number, _, rest = rest.partition(" characters left out")
    tail = rest.partition("…]\n")[2]
    assert head
    assert tail
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert int(number) == len(whole) + missing - len(head) - len(tail)
