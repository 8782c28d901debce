"""What is there at once goes out as few texts of bounded size."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.errors import OurWords
from internal.events import AnswerBreak, AnswerText, Noted, Shown, ShownTogether, ThoughtText
from internal.model.reading import MAX_BYTES, together
from internal.render.messages import MAX_TEXT_BYTES

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
def test_chunks_that_come_together_mean_the_same_as_one(parts: list[Shown]) -> None:
    assert list(together(parts)) == ([ShownTogether(tuple(parts))] if parts else [])


def test_other_events_keep_their_place() -> None:
    note = Noted(OurWords("n"))

    assert list(together([AnswerText("a"), ThoughtText("b"), note, AnswerText("c")])) == [
        ShownTogether((AnswerText("a"), ThoughtText("b"))),
        note,
        ShownTogether((AnswerText("c"),)),
    ]


@pytest.mark.parametrize("letter", ["a", "日", "\U0001f600"])
def test_a_large_text_is_several_events_that_each_fit_into_a_message(letter: str) -> None:
    events = [event.parts for event in together([AnswerText(letter * 300_000)]) if isinstance(event, ShownTogether)]

    assert "".join(text for parts in events for _, text in letters(parts)) == letter * 300_000
    sizes = [sum(len(text.encode()) for _, text in letters(parts)) for parts in events]
    assert max(sizes) <= MAX_TEXT_BYTES
    assert min(sizes[:-1]) >= MAX_BYTES


def test_many_parts_are_several_events_though_they_are_short() -> None:
    events = [
        event.parts for event in together([ThoughtText("t"), AnswerBreak()] * 2_000) if isinstance(event, ShownTogether)
    ]

    assert sum(map(len, events)) == 4_000
    assert max(map(len, events)) < 1_000
