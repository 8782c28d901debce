"""Secrets leave the plugin only in the call that they belong to: in texts, in what streams, and in the log."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.errors import OurWords
from internal.events import AnswerBreak, AnswerText, Event, LogNote, ShownBatch, ThoughtText
from internal.render.log import MAX_PREVIEW_LENGTH, preview
from internal.render.messages import redacted_text
from internal.text.secrets import (
    BORDER,
    MAX_ERROR_LENGTH,
    REDACTED,
    KnownSecrets,
    Redactor,
    looks_secret,
    without_named,
)
from tests.support.generators import cut, cut_lists, json_values, readable_text, text_from_the_host

SECRET = 'p"ä/ss word!&=+<n>'


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        repr(SECRET + "'"),
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        json.dumps(SECRET).replace("/", "\\/"),
        json.dumps(SECRET, ensure_ascii=False).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"),
        json.dumps(json.dumps(SECRET)),
        json.dumps(json.dumps(SECRET, ensure_ascii=False), ensure_ascii=False),
        "p%22%C3%A4%2Fss%20word%21%26%3D%2B%3Cn%3E",
        "p%22%c3%a4%2fss+word%21%26%3d%2b%3cn%3e",
        "p%22%C3%A4/ss%20word%21%26%3D%2B%3Cn%3E",
        "p%22%C3%A4/ss%20word!&=+%3Cn%3E",
    ],
)
def test_a_secret_is_replaced_however_it_is_written(written: str) -> None:
    text = Redactor.of([SECRET]).text(f"({written})")

    assert text.replace('"', "").replace("\\", "").replace("'", "") == f"({REDACTED})"


@pytest.mark.parametrize("secret", ["secret-one", "line one\nline two"])
def test_a_secret_that_two_texts_share_is_replaced(secret: str) -> None:
    redactor = Redactor.of([secret])
    for at in range(1, len(secret)):
        texts = ["a", f"b {secret[:at]}", f"{secret[at:]} c", "d"]
        assert redactor.texts(BORDER.join(texts), "\n") == f"a\nb {REDACTED} c\nd"
    assert redactor.texts(BORDER.join(["a", secret, "b"]), "\n") == f"a\n{REDACTED}\nb"


@pytest.mark.parametrize(
    ("secrets", "text", "shown"),
    [
        ([], "secret", "secret"),
        (["abcde", "abcdef"], "abcde abcdef", f"abcde {REDACTED}"),
        (["secret", "secret-longer"], "secret-longer secret", f"{REDACTED} {REDACTED}"),
        (["secret-a", "secret-bb"], "secret-asecret-bbsecret-c", f"{REDACTED}{REDACTED}secret-c"),
        (["^-]\\[&~|"], "<^-]\\[&~|>", f"<{REDACTED}>"),
        (["abcdef\ud83d"], "abcdef\ud83d abcdef?", f"{REDACTED} {REDACTED}"),
        (["secret-one\n"], "(secret-one)", f"({REDACTED})"),
    ],
    ids=ascii,
)
def test_every_known_secret_of_six_characters_is_replaced(secrets: list[str], text: str, shown: str) -> None:
    assert Redactor.of(secrets).text(text) == shown


@given(st.lists(readable_text, max_size=4), readable_text, readable_text)
def test_no_secret_of_six_characters_survives(secrets: list[str], before: str, after: str) -> None:
    text = Redactor.of(secrets).text(before + "".join(secrets) + after)

    rest = text.replace(REDACTED, "\0")
    known = [secret for secret in secrets if len(secret) >= 6 and not secret.isspace()]
    assert not [secret for secret in known if secret in rest and secret not in REDACTED]


def test_json_of_others_is_redacted_in_texts_names_and_numbers_and_never_for_a_name() -> None:
    redactor = Redactor.of(["known-value", "12345678"])

    assert redactor.json(
        {
            "api_key": "under-a-key",
            "list": ["a known-value", 12345678, 123456789, 1.5, None, True],
            "known-value": "as a name",
        }
    ) == {
        "api_key": "under-a-key",
        "list": [f"a {REDACTED}", REDACTED, 123456789, 1.5, None, True],
        REDACTED: "as a name",
    }


@pytest.mark.parametrize(
    ("secret", "number"),
    [
        *(("3.14159265", 3.14159265), ("-2718.28", -2718.28), ("1234567", 1234567.0), ("12.50000", 12.5)),
        *(("0.00001234", 0.00001234), ("0012345678", 12345678), ("1.5e300", 1.5e300)),
    ],
)
def test_a_number_that_is_a_secret_leaves_the_json_of_others(secret: str, number: float) -> None:
    assert Redactor.of([secret]).json({"a": [number, 2 * number]}) == {"a": [REDACTED, 2 * number]}


def test_names_that_are_secrets_stay_two() -> None:
    redactor = Redactor.of(["first-secret", "other-secret"])
    named = {"first-secret": 1, "other-secret": 2, "x first-secret": 3, "x other-secret": 4, REDACTED: 5}

    assert list(redactor.json(named).items()) == [
        *((f"{REDACTED} 2", 1), (f"{REDACTED} 3", 2), (f"x {REDACTED}", 3), (f"x {REDACTED} 2", 4), (REDACTED, 5)),
    ]


def test_json_of_ours_keeps_its_names_and_numbers_and_stays_json() -> None:
    redactor = Redactor.of(["12345678", 'a"b c"d', "status"])

    assert redactor.values({"status": ["my status", 12345678, None]}) == {"status": [f"my {REDACTED}", 12345678, None]}
    redacted = redactor.json_text(json.dumps({"most": 123456789, "title": 'the a"b c"d'}))
    assert json.loads(redacted) == {"most": 123456789, "title": f"the {REDACTED}"}
    assert redactor.json_text('{"most": 7}') == '{"most": 7}'
    assert redactor.json_text("{12345678") == f"{{{REDACTED}"


def test_a_key_that_names_a_secret_looks_secret() -> None:
    secret = "api_key apiKey X-Api-Key openai_api_key apikey accessToken token db.password clientSecret Set-Cookie"
    other = "max_tokens token_count next_page_token nextPageToken cursorToken author key secretary"

    assert [
        key for key in f"{secret} Authorization credentials private_key Set-Cookie".split() if not looks_secret(key)
    ] == []
    assert [key for key in [*other.split(), ""] if looks_secret(key)] == []


KEYS = ["ghp_abcdefghijklmnop1234", "xoxb-1234-abcd-5678", "AIzaSyA1234567890abcdefghij", "AKIAABCDEFGHIJKLMNOP"]
KEYS += ["sk_live_51Habcdefghijk", "github_pat_11ABCDEFG0abcdefghijk", "hf_abcdefghijklmnopqrstuvwxyz"]


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Incorrect API key provided: sk-proj-abcdefgh12345678.", "sk-proj-abcdefgh12345678"),
        *[(f"push with {key}", key) for key in KEYS],
        ("Authorization: Bearer 0123456789abcdef", "0123456789abcdef"),
        ('{"Authorization": "Basic dXNlcjpwYXNz"}', "dXNlcjpwYXNz"),
        ("https://host.test/?api_key=0123456789&q=1", "0123456789"),
        ('{"password": "correct-horse"}', "correct-horse"),
        ('{"args": {"description": "sent {\\"api_key\\": \\"abcdef123456\\"}"}}', "abcdef123456"),
        (json.dumps(json.dumps(json.dumps({"api_key": "abcdef123456", "q": 1}))), "abcdef123456"),
        ('{"password": "p/ss", "passphrase": "\\u00e4-correct-horse', "horse"),
        ("aws_secret_access_key=wJalrXUtnFEMIK7MDENGbPx", "MDENG"),
        ("private_key: MIIEvQIBADANBg", "MIIEvQIBADANBg"),
        ('{"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIEvQ\\n-----END', "MIIEvQ"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEvQ\nabc\n-----END", "MIIEvQ"),
        ("Set-Cookie: a=1; session=abcdefgh123; Path=/", "abcdefgh123"),
        ("the access key you sent is: 'abcdef-012345'", "abcdef-012345"),
        ("https://host.test/v1?q=1&key=abcdef0123456789", "abcdef0123456789"),
    ],
)
def test_credentials_in_an_error_of_a_provider_are_replaced(text: str, secret: str) -> None:
    shown = without_named(Redactor.of([]).error(text))

    assert secret not in shown
    assert REDACTED in shown


@pytest.mark.parametrize(
    "text",
    [
        "maximum context length is 8192 tokens",
        "tokens: 512000, max_tokens=100000",
        "primary_key=12345678 violates pk_customers_name",
        "Your API key: generate one at https://host.test",
        "Invalid token: expired. password: required",
        '{"token": "", "some_parameter": "value"}',
        "http://127.0.0.1:5001/inner/api/invoke/llm",
        "Post http://plugin.test:5003/users/bob@example.test: EOF",
        "invalid app_token: bascnXYZ123",
        "credentials: connection refused by 10.0.0.1",
    ],
)
def test_innocent_texts_stay_as_they_are(text: str) -> None:
    assert without_named(Redactor.of([]).error(text)) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("key sk-abcdefgh12345 refused", f"key {REDACTED} refused"),
        ("at https://bob:hun@ter2@host.test/x", f"at https://bob:{REDACTED}@host.test/x"),
        ("redis://:hunter2@host.test:6379/0", f"redis://:{REDACTED}@host.test:6379/0"),
        ("Basic dXNlcjpwYXNz was sent", f"Basic {REDACTED} was sent"),
        ('{"password": "too-short"} is too short', '{"password": "too-short"} is too short'),
        ("password=hunter22 is unknown", "password=hunter22 is unknown"),
    ],
)
def test_an_error_loses_shapes_and_nothing_for_its_name(text: str, shown: str) -> None:
    assert Redactor.of([]).error(text) == shown


def test_no_half_of_a_secret_is_left_where_an_error_is_cut() -> None:
    secret = "correct-horse-battery"

    shown = Redactor.of([secret]).error(f"{secret} " * 2 + "x" * (MAX_ERROR_LENGTH - 50) + secret)

    assert shown.count(REDACTED) == 2
    assert "correct" not in shown


FORMS = ["secret", "secret-longer", "crets-", 'a\\b"c d', "aaaaaab"]


@given(
    st.lists(st.sampled_from([*FORMS, *'secrtalong\\-" ', "aaaaaa", "\ud83d"]), max_size=20).map("".join), cut_lists(80)
)
def test_a_text_in_pieces_is_redacted_as_the_whole_is(text: str, cuts: list[int]) -> None:
    redactor = Redactor.of(FORMS)
    shown = ""
    held = ""

    for piece in cut(text, cuts):
        certain, held = redactor.split(held + piece)
        shown += certain
        assert len(held) <= 2 * max(map(len, FORMS))

    assert shown + redactor.text(held) == redactor.text(text)


def test_only_a_possible_beginning_of_a_secret_is_held_back() -> None:
    redactor = Redactor.of(["secret-one"])

    assert redactor.split("an answer") == ("an answer", "")
    assert redactor.split("my secre") == ("my ", "secre")
    assert redactor.split("secret-one s") == (f"{REDACTED} ", "s")
    assert Redactor.of([]).split("my secret-on") == ("my secret-on", "")


HELD = "hunter2-hunter2"
NONE = Redactor.of([])


def shown(*events: Event) -> list[Event]:
    return list(redacted_text(events, KnownSecrets(Redactor.of([HELD]))))


def test_text_that_was_held_back_but_is_not_secret_is_shown_in_place() -> None:
    assert shown(ThoughtText("my hunt"), AnswerText("er2"), AnswerBreak(), AnswerText("hunter")) == [
        *(ThoughtText("my "), ThoughtText("hunt"), AnswerText("er2"), AnswerBreak(), AnswerText("hunter"))
    ]
    assert shown(
        ShownBatch((ThoughtText(HELD), AnswerBreak(), AnswerText("my hunter2-"))),
        LogNote(OurWords("amid a text")),
        ShownBatch((AnswerText("hunter2"),)),
        ShownBatch((AnswerText("hunt"),)),
    ) == [
        ShownBatch((ThoughtText("[redacted]"), AnswerBreak(), AnswerText("my "))),
        LogNote(OurWords("amid a text")),
        ShownBatch((AnswerText("[redacted]"),)),
        AnswerText("hunt"),
    ]


def test_a_secret_that_is_learnt_while_text_streams_is_hidden_from_then_on_even_if_the_run_fails() -> None:
    known = KnownSecrets(Redactor.of([]))
    written = list[Event]()

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
