"""What is there at once goes out as few texts of bounded size."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from internal.model.together import MAX_BYTES, MAX_PARTS, together
from internal.report.events import AnswerBreak, AnswerText, Noted, Shown, ShownTogether, ThoughtText

PARTS = st.one_of(
    st.builds(AnswerText, st.text("ab", min_size=1, max_size=3)),
    st.builds(ThoughtText, st.text("ab", min_size=1, max_size=3)),
    st.just(AnswerBreak()),
)


def letters(parts: Sequence[Shown]) -> list[tuple[type[Shown], str]]:
    """Each character with its kind."""
    said: list[tuple[type[Shown], str]] = []
    for part in parts:
        said += [(AnswerBreak, "")] if isinstance(part, AnswerBreak) else [(type(part), each) for each in part.text]
    return said


@given(st.lists(PARTS, max_size=12))
def test_what_comes_together_says_the_same_in_one(parts: list[Shown]) -> None:
    events = list(together(parts))

    assert len(events) == min(1, len(parts))
    for event in events:
        assert isinstance(event, ShownTogether)
        assert letters(event.parts) == letters(parts)
        texts = [part for part in event.parts if not isinstance(part, AnswerBreak)]
        assert len(texts) <= 1 + sum(type(a) is not type(b) for a, b in pairwise(parts))


def test_other_events_keep_their_place() -> None:
    note = Noted("n")

    assert list(together([AnswerText("a"), AnswerText("b"), note, AnswerText("c")])) == [
        ShownTogether((AnswerText("ab"),)),
        note,
        ShownTogether((AnswerText("c"),)),
    ]


def test_a_large_text_and_many_parts_are_several_texts() -> None:
    large = list(together([AnswerText("日" * MAX_BYTES)]))
    assert len(large) == 4
    sizes = [
        len(part.text.encode())
        for event in large
        if isinstance(event, ShownTogether)
        for part in event.parts
        if isinstance(part, AnswerText)
    ]
    assert sum(sizes) == 3 * MAX_BYTES
    assert max(sizes) <= MAX_BYTES

    assert len(list(together([ThoughtText("t"), AnswerText("a")] * MAX_PARTS))) == 2
