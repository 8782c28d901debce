"""Where a text stands in a longer one: every place is found, whatever the spelling and wherever parts meet."""

import re
import unicodedata
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal import clock as fairness
from internal.transcript import long_results as finding
from internal.transcript.long_results import places

letters = st.sampled_from(
    [*"aAbBéÉßſ ", "e\u0301", "ﬁ", "ガ", "ｶﾞ", "か\u3099", "か", "カ", "e", "İ", "한", "\n", "½", "𝒳", "K"]
)
texts = st.lists(letters, max_size=60).map("".join)


def found(text: str, wanted: str) -> list[str]:
    return [text[start:end] for start, end in places(text, wanted)]


SPELLINGS = {
    "letter case": ("Straße STRASSE strasse", "STRASSE", ["Straße", "STRASSE", "strasse"]),
    "accents in one character or two": ("café CAFE\u0301 cafe", "café", ["café", "CAFE\u0301"]),
    "wide letters": ("ＡＢＣ abc", "Abc", ["ＡＢＣ", "abc"]),
    "narrow kana": ("ｶﾞｲﾄﾞ ガイド カイト", "ガイド", ["ｶﾞｲﾄﾞ", "ガイド"]),
    "a letter that is one character only when it is small": ("J\u030c", "ǰ", ["J\u030c"]),
    "a ligature": ("oﬃce", "ff", ["ﬃ"]),
    "one after the other": ("aaaa", "aa", ["aa", "aa"]),
    "nothing to look for": ("abc", "", []),
    "nothing to look in": ("", "abc", []),
    "longer than the text": ("abc", "abcd", []),
    "at both ends": ("x-x", "X", ["x", "x"]),
}


@pytest.mark.parametrize(("text", "wanted", "expected"), SPELLINGS.values(), ids=SPELLINGS)
def test_a_text_is_found_in_every_spelling(text: str, wanted: str, expected: list[str]) -> None:
    assert found(text, wanted) == expected


@given(texts, st.data(), st.integers(1, 20))
def test_no_place_is_missed_wherever_blocks_end(text: str, data: st.DataObject, block: int) -> None:
    bounds = [match.start() for match in re.finditer(r"[^\u0300-\u036f\u3099\u309a\uff9e\uff9f]", text)] + [len(text)]
    start, end = sorted((data.draw(st.sampled_from(bounds)), data.draw(st.sampled_from(bounds))))
    wanted = text[start:end]

    with patch.object(finding, "_BLOCK", block):
        in_blocks = list(places(text, wanted))

    assert in_blocks == list(places(text, wanted))
    assert all(spelled(wanted) in spelled(text[place.start : place.end]) for place in in_blocks)
    assert len(in_blocks) == (spelled(text).count(spelled(wanted)) if wanted else 0)


@pytest.mark.parametrize("before", range(20))
def test_a_letter_keeps_its_mark_wherever_blocks_end(before: int) -> None:
    with patch.object(finding, "_BLOCK", 4):
        found_in = [list(places("x" * before + letter + "x", "か")) for letter in ("か\u3099", "か")]

    assert found_in == [[], [(before, before + 1)]]


def spelled(text: str) -> str:
    """The same for texts that count as equal; of the whole text at once."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


@pytest.mark.parametrize("letter", ["a", "が", "か\u3099", "\u0301"])
def test_a_long_text_is_searched_to_its_end(letter: str) -> None:
    text = letter * 500_000 + "needle"

    assert list(places(text, "NEEDLE")) == [(len(text) - 6, len(text))]


@pytest.mark.parametrize("wanted", ["needle", "h", "hay hay "])
@pytest.mark.parametrize("unit", ["hay ", "か\u3099hay "])
def test_other_sessions_run_during_a_long_search(unit: str, wanted: str) -> None:
    text = unit * 20_000
    with patch.object(fairness, "MAX_TURN_SECONDS", -1), patch.object(fairness, "give_way") as give_way:
        list(places(text, wanted))

    assert give_way.call_count > len(text) / 5_000
