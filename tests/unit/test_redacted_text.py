"""Known secrets are replaced in text that streams."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.errors import OurWords
from internal.events import AnswerBreak, AnswerText, Event, Noted, ShownTogether, ThoughtText
from internal.render.messages import redacted_text
from internal.text.secrets import KnownSecrets, Redactor
from tests.unit.generators import cut, cut_lists, joined

SECRET = "hunter2-hunter2"


def shown(*events: Event) -> list[Event]:
    return list(redacted_text(events, KnownSecrets(Redactor.of([SECRET]))))


@given(joined([SECRET, "hunter", "2", " "]), cut_lists(100), st.sampled_from([AnswerText, ThoughtText]))
def test_a_streamed_text_contains_no_secret_however_it_is_cut(
    text: str, cuts: list[int], kind: type[AnswerText | ThoughtText]
) -> None:
    written = shown(*(kind(piece) for piece in cut(text, cuts)))

    assert all(isinstance(event, kind) for event in written)
    assert "".join(event.text for event in written if isinstance(event, kind)) == text.replace(SECRET, "[redacted]")


def test_text_that_was_held_back_but_is_not_secret_is_shown_in_place() -> None:
    assert shown(ThoughtText("my hunt"), AnswerText("er2"), AnswerBreak(), AnswerText("hunter")) == [
        ThoughtText("my "),
        ThoughtText("hunt"),
        AnswerText("er2"),
        AnswerBreak(),
        AnswerText("hunter"),
    ]


def test_texts_that_are_shown_together_stay_together() -> None:
    assert shown(
        ShownTogether((ThoughtText(SECRET), AnswerBreak(), AnswerText("my hunter2-"))),
        ShownTogether((AnswerText("hunter2"),)),
        ShownTogether((AnswerText("hunt"),)),
    ) == [
        ShownTogether((ThoughtText("[redacted]"), AnswerBreak(), AnswerText("my "))),
        ShownTogether((AnswerText("[redacted]"),)),
        AnswerText("hunt"),
    ]


def test_a_note_amid_a_text_does_not_tear_a_secret_in_two() -> None:
    assert shown(AnswerText("hunter2-"), Noted(OurWords("x")), AnswerText("hunter2")) == [
        Noted(OurWords("x")),
        AnswerText("[redacted]"),
    ]


def test_a_secret_that_is_learnt_while_text_streams_is_hidden_from_then_on() -> None:
    known = KnownSecrets(Redactor.of([]))

    def events() -> Iterator[Event]:
        yield AnswerText("letme-in ")
        known.learn(["letme-in"])
        yield AnswerText("letme-in")

    assert list(redacted_text(events(), known)) == [AnswerText("letme-in "), AnswerText("[redacted]")]


def test_a_run_that_fails_keeps_what_was_held_back() -> None:
    def events() -> Iterator[Event]:
        yield AnswerText("my hunt")
        raise ValueError("the end")

    written: list[Event] = []
    with pytest.raises(ValueError, match="the end"):
        written.extend(redacted_text(events(), KnownSecrets(Redactor.of([SECRET]))))

    assert written == [AnswerText("my "), AnswerText("hunt")]
