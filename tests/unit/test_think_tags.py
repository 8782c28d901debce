"""Tags of thoughts, and how an answer quotes them."""

import re

import pytest
from hypothesis import given

from internal.thoughts.think_tags import MAX_ATTRIBUTES_LENGTH, OF_MODELS, OURS, QuotedTags, Tags, unquoted
from tests.unit.generators import cut, cut_lists, joined

PARTS = ["<think>", "</think>", "<THINK a='b'>", "</Think >", "<thinking>", "<", "/", "think", "th", "ink>", " ", "x>"]
AS_HOSTS_READ_THEM = re.compile(r"</?think(?![\w-])[^>]*>", re.IGNORECASE)


def quoted(*pieces: str) -> str:
    writer = QuotedTags()
    return "".join([*map(writer.feed, pieces), writer.finish()])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>", True),
        ("</think>", True),
        ("<THINK>", True),
        ('<think foo="bar">', True),
        ("</think\n>", True),
        (f"<think {'a' * MAX_ATTRIBUTES_LENGTH}>", True),
        (f"<think {'a' * (MAX_ATTRIBUTES_LENGTH + 1)}>", False),
        ("<thinking>", False),
        ("<think-more>", False),
        ("<think/>", False),
        ("<think />", False),
        ("< think>", False),
        ("<think <b>", False),
        ("<think", False),
    ],
)
def test_recognised_tags(text: str, *, expected: bool) -> None:
    assert OF_MODELS.are_in(f"a{text}b") is expected
    assert OURS.are_in(f"a{text}b") is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a <", 1), ("a </", 2), ("<tHi", 4), ("<think", 6), ("<think a", 8), ("</think ", 8), ("a <b", 0), ("", 0)],
)
def test_the_end_of_a_text_that_may_become_a_tag(text: str, expected: int) -> None:
    assert OF_MODELS.beginning_at_end(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a <th", 3), ("a </reason", 8), ("<reasoning a", 12), ("<thinko", 0), ("<rt", 0), ("<reasonings", 0)],
)
def test_every_name_of_the_tags_has_its_beginnings(text: str, expected: int) -> None:
    assert Tags(("think", "reasoning")).beginning_at_end(text) == expected


def test_text_that_waits_for_the_end_of_a_tag_is_bounded() -> None:
    assert OF_MODELS.beginning_at_end(f"<think {'a' * (MAX_ATTRIBUTES_LENGTH + 1)}") == 0


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("`<think>`", "`<\u2060think>`"),
        ("a</THINK>b", "a<\u2060/THINK>b"),
        ("<think foo='1'>", "<\u2060think foo='1'>"),
        ("<think", "<\u2060think"),
        ("<thinking> <thinker> <b> a < b", "<thinking> <thinker> <b> a < b"),
    ],
)
def test_a_quoted_tag_has_a_word_joiner_after_its_bracket(text: str, written: str) -> None:
    assert quoted(text) == written
    assert unquoted(written) == text


@given(joined(PARTS), cut_lists(60))
def test_no_tag_is_left_however_the_text_is_cut(text: str, cuts: list[int]) -> None:
    written = quoted(*cut(text, cuts))

    assert written == quoted(text) == quoted(*text)
    assert not AS_HOSTS_READ_THEM.search(written)
    assert written.replace("\u2060", "") == unquoted(written) == text


def test_only_the_beginning_of_a_tag_waits() -> None:
    writer = QuotedTags()

    assert writer.feed("a < b </thin") == "a < b "
    assert writer.feed("gs are fine") == "</things are fine"
    assert writer.feed("a" * 1000 + "<think") == "a" * 1000
    assert writer.feed("ing") == "<thinking"
