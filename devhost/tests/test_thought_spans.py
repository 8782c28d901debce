from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from devhost.node.texts import ThoughtSpans

TEXT = "Well <think>\na < b </thin\n</think>\n\nso <b>it</b> is <thi"


def spans(pieces: list[str]) -> list[tuple[bool, str]]:
    splitter = ThoughtSpans()
    found = [span for piece in pieces for span in splitter.feed(piece)]
    return [*found, *splitter.finish()]


def merged(pieces: list[str]) -> tuple[str, str]:
    found = spans(pieces)
    return "".join(text for thinking, text in found if thinking), "".join(
        text for thinking, text in found if not thinking
    )


def test_thought_and_speech() -> None:
    assert merged([TEXT]) == ("\na < b </thin\n", "Well \n\nso <b>it</b> is <thi")


def test_the_tags_may_be_kept_among_the_thoughts() -> None:
    assert list(ThoughtSpans(keep_tags=True).feed("<think>a</think>b")) == [
        (True, "<think>"),
        (True, "a"),
        (True, "</think>"),
        (False, "b"),
    ]


@given(st.lists(st.integers(0, len(TEXT)), max_size=12))
def test_any_split_shows_the_same(cuts: list[int]) -> None:
    borders = [0, *sorted(cuts), len(TEXT)]
    pieces = [TEXT[start:end] for start, end in pairwise(borders)]
    assert merged(pieces) == merged([TEXT])
