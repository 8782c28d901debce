"""Long texts: which part is kept, and which part a model reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.text.secrets import Redactor
from internal.text.texts import Excerpt, KeptText, cut_to_size, joined

SECRET = "hunter2-hunter2"
LONGEST, TAIL = 200_000, 50_000


def kept_of(*pieces: str) -> KeptText:
    kept = KeptText(LONGEST, TAIL)
    for piece in pieces:
        kept.add(piece)
    return kept


def in_pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


@pytest.mark.parametrize("size", [7, 49_999, 100_000, 1_000_000])
@pytest.mark.parametrize("length", [0, 1, 99_999, 100_000, 100_001, LONGEST])
def test_a_text_within_the_limit_is_kept_whole(length: int, size: int) -> None:
    text = ("0123456789\r\n" * LONGEST)[:length]
    kept = kept_of(*in_pieces(text, size))

    assert kept.excerpt(str) == Excerpt(text)
    assert (kept.length, kept.last, kept.says_something) == (length, text[-1:], length > 0)


@pytest.mark.parametrize("size", [7, 49_999, 100_000, 1_000_000])
@pytest.mark.parametrize("length", [LONGEST + 1, LONGEST + TAIL + 1, 777_777])
def test_of_a_longer_text_the_beginning_and_the_end_are_kept(length: int, size: int) -> None:
    text = ("0123456789" * length)[:length]
    kept = kept_of(*in_pieces(text, size))
    shown = kept.excerpt(str)
    head, gap, rest = shown.text.partition("\n[… ")
    number, _, tail = rest.partition(" characters were not kept …]\n")

    assert len(kept.whole()) <= LONGEST
    assert gap
    assert text.startswith(head)
    assert text.endswith(tail)
    assert min(len(head), len(tail)) >= TAIL - 20_000
    assert int(number) == length - len(head) - len(tail)
    assert len(shown.text) + shown.missing == length


@given(st.integers(99_900, 100_010), st.integers(-20, 20), st.sampled_from([1, 10, 1_000]))
def test_no_half_of_a_secret_is_left_at_a_gap(before: int, after: int, size: int) -> None:
    text = "m" * before + SECRET + "m" * 500_000 + SECRET + "m" * (TAIL + after)
    shown = kept_of(*in_pieces(text, len(text) // size + 1)).excerpt(Redactor.of([SECRET]).text).text

    assert not [end for end in range(4, len(SECRET)) if SECRET[:end] + "\n" in shown or "\n" + SECRET[-end:] in shown]
    assert SECRET not in shown


def test_parts_that_say_something_are_joined() -> None:
    assert joined([Excerpt("a", 1), Excerpt(" "), Excerpt("b", 2)]) == Excerpt("a\n\nb", 3)
    assert joined([]) == Excerpt("")


def test_characters_that_were_not_kept_count_as_left_out() -> None:
    assert "[… 999999" not in cut_to_size("m" * 2_000, 1_000)
    cut = cut_to_size("m" * 2_000, 1_000, missing=1_000_000)
    left_out = int(cut.partition("[… ")[2].partition(" ")[0])

    assert len(cut) <= 1_000
    assert left_out == 1_002_000 - cut.count("m") + 1  # the m of "more" or "see them"


@given(st.text(min_size=1, max_size=20), st.integers(1, 200), st.integers(100, 300))
def test_a_cut_result_is_never_longer_than_the_limit_and_keeps_head_and_tail(unit: str, times: int, limit: int) -> None:
    whole = unit * times
    result = cut_to_size(whole, limit)

    assert len(result) <= limit
    if len(whole) <= limit:
        assert result == whole
    else:
        head, middle, tail = result.partition("\n[… ")
        number, _, rest = tail.partition(" characters left out")
        end = rest.partition("…]\n")[2]
        assert all((head, middle, end))
        assert whole.startswith(head)
        assert whole.endswith(end)
        assert int(number) == len(whole) - len(head) - len(end)
