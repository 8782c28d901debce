"""What the log shows of a value."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.render.log import MAX_PREVIEW_LENGTH, preview
from internal.text.secrets import REDACTED, Redactor
from tests.unit.generators import json_values, text_from_the_host

NONE = Redactor.of([])


@pytest.mark.parametrize("name", ["token", "credentials", "max_token", "cookie", "app_token", "Authorization"])
@pytest.mark.parametrize("value", ["x", 4096, {"user": "u"}, ["a"], 'with "quotes"'], ids=repr)
def test_values_under_a_secrets_name_are_hidden_in_json_and_in_json_text(name: str, value: object) -> None:
    said = {"q": "kept", "in": [{name: value, "n": 1}]}
    shown = {"q": "kept", "in": [{name: REDACTED, "n": 1}]}

    assert preview(said, NONE) == shown
    for text in (json.dumps(said), f"Said: {json.dumps(said)}", json.dumps(said, indent=2)):
        assert json.loads(str(preview(text, NONE)).removeprefix("Said: ")) == shown
    assert preview({"body": json.dumps(said)}, NONE) == {"body": str(preview(json.dumps(said), NONE))}


def test_json_within_json_is_hidden_too() -> None:
    text = json.dumps({"body": json.dumps({"token": "ethereum", "q": "kept"})})

    shown = str(preview(f"got {text}", NONE))
    assert "ethereum" not in shown
    assert "kept" in shown


@pytest.mark.parametrize("value", [None, True, False, "", [], {}], ids=repr)
def test_values_without_content_are_shown(value: object) -> None:
    assert preview({"token": value}, NONE) == {"token": value}
    assert preview(json.dumps({"token": value, "n": 1}), NONE) == json.dumps({"token": value, "n": 1})


@pytest.mark.parametrize(
    "value",
    [{"page_token": "p", "tokens": 12, "author": "a", "key": "k"}, "The token: ethereum", ["a", 1, None]],
    ids=repr,
)
def test_other_names_and_prose_stay(value: object) -> None:
    assert preview(value, NONE) == value


@pytest.mark.parametrize(
    "arguments",
    [
        '{"q": "x", "password": "ethereum"',
        '{"password": "ethereum',
        "{'password': 'ethereum', }",
        "{password: 'ethereum'}",
        "password=ethereum",
        '{"credentials": {"user": "ethereum", ',
        '{"token": ["ethereum"',
        "{token: ethereum",
    ],
)
def test_arguments_that_do_not_parse_hide_it_as_far_as_they_go(arguments: str) -> None:
    shown = str(preview(arguments, NONE, with_bare_names=True))

    assert "ethereum" not in shown
    assert REDACTED in shown


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
    assert hidden == f'{{"token": "{REDACTED}"… (100,021 characters)'


@given(json_values | text_from_the_host, st.booleans())
def test_a_preview_is_small_and_can_be_written(value: Any, as_text: bool) -> None:  # noqa: ANN401, FBT001 - drawn
    shown = preview(json.dumps(value) if as_text else value, NONE)

    assert len(json.dumps(shown, ensure_ascii=False).encode()) < 10 * MAX_PREVIEW_LENGTH
