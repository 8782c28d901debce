"""Known secrets are replaced in text that streams and in what the log shows of a value."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.errors import OurWords
from internal.events import AnswerBreak, AnswerText, Event, Noted, ShownTogether, ThoughtText
from internal.render.log import MAX_PREVIEW_LENGTH, preview
from internal.render.messages import redacted_text
from internal.text.secrets import REDACTED, KnownSecrets, Redactor
from tests.support.generators import cut, cut_lists, joined, json_values, text_from_the_host

SECRET = "hunter2-hunter2"
NONE = Redactor.of([])


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
        *(ThoughtText("my "), ThoughtText("hunt"), AnswerText("er2"), AnswerBreak(), AnswerText("hunter"))
    ]
    assert shown(
        ShownTogether((ThoughtText(SECRET), AnswerBreak(), AnswerText("my hunter2-"))),
        Noted(OurWords("amid a text")),
        ShownTogether((AnswerText("hunter2"),)),
        ShownTogether((AnswerText("hunt"),)),
    ) == [
        ShownTogether((ThoughtText("[redacted]"), AnswerBreak(), AnswerText("my "))),
        Noted(OurWords("amid a text")),
        ShownTogether((AnswerText("[redacted]"),)),
        AnswerText("hunt"),
    ]


def test_a_secret_that_is_learnt_while_text_streams_is_hidden_from_then_on_even_if_the_run_fails() -> None:
    known, written = KnownSecrets(Redactor.of([])), list[Event]()

    def events() -> Iterator[Event]:
        yield AnswerText("letme-in ")
        known.learn(["letme-in"])
        yield AnswerText("letme-in, my let")
        raise ValueError("the end")

    with pytest.raises(ValueError, match="the end"):
        written.extend(redacted_text(events(), known))

    assert written == [AnswerText("letme-in "), AnswerText("[redacted], my "), AnswerText("let")]


# What the log shows of a value, where values under a secret's name are hidden too.


@pytest.mark.parametrize("name", ["token", "credentials", "max_token", "cookie", "app_token", "Authorization"])
@pytest.mark.parametrize("value", ["x", 4096, {"user": "u"}, ["a"], 'with "quotes"'], ids=repr)
def test_values_under_a_secrets_name_are_hidden_in_json_and_in_json_text(name: str, value: object) -> None:
    said = {"q": "kept", "in": [{name: value, "n": 1}]}
    hidden = {"q": "kept", "in": [{name: REDACTED, "n": 1}]}

    assert preview(said, NONE) == hidden
    for text in (json.dumps(said), json.dumps(said, indent=2)):
        assert json.loads(str(preview(text, NONE))) == hidden
        assert preview({"body": text}, NONE) == {"body": preview(text, NONE)}


OTHERS: list[object] = [
    {"page_token": "p", "tokens": 12, "author": "a", "key": "k"},
    *("The token: ethereum", ["a", 1, None]),
    *({"token": None}, {"token": True}, {"token": ""}, {"token": []}, {"token": {}}),
]


@pytest.mark.parametrize("value", OTHERS, ids=repr)
def test_other_names_prose_and_values_that_say_nothing_are_shown(value: object) -> None:
    assert preview(value, NONE) == value
    assert preview(json.dumps(value), NONE) == json.dumps(value)


@pytest.mark.parametrize(
    "text",
    [
        f"got {json.dumps({'body': json.dumps({'token': 'ethereum', 'q': 'x'})})}",
        '{"q": "x", "password": "ethereum"',
        '{"password": "ethereum',
        "{'password': 'ethereum', }",
        "{password: 'ethereum'}",
        "password=ethereum",
    ],
)
def test_a_text_that_is_not_json_is_without_what_it_calls_a_secret(text: str) -> None:
    hidden = str(preview(text, NONE))

    assert "ethereum" not in hidden
    assert REDACTED in hidden


def test_known_values_are_replaced_before_a_value_is_cut() -> None:
    redactor = Redactor.of(["correct-horse"])

    for position in range(MAX_PREVIEW_LENGTH - 20, MAX_PREVIEW_LENGTH):
        text = "x" * position + "correct-horse" + "y" * 9_000
        assert "correct" not in str(preview(text, redactor))
        assert "correct" not in str(preview({"a": [text]}, redactor))


def test_a_long_value_is_the_beginning_of_its_text_with_its_length() -> None:
    assert preview("x" * 10_000_000, NONE) == "x" * MAX_PREVIEW_LENGTH + "… (10,000,000 characters)"
    assert str(preview({"a": "x" * 9_990}, NONE)).endswith("… (9,999 characters)")
    hidden = str(preview('{"token": "' + "x" * 100_000 + '", "q": 1}', NONE))
    assert hidden == f'{{"token": "{REDACTED}… (100,021 characters)'


@given(json_values | text_from_the_host, st.booleans())
def test_a_preview_is_small_and_can_be_written(value: Any, as_text: bool) -> None:  # noqa: ANN401, FBT001 - drawn
    said = preview(json.dumps(value) if as_text else value, NONE)

    assert len(json.dumps(said, ensure_ascii=False).encode()) < 10 * MAX_PREVIEW_LENGTH
