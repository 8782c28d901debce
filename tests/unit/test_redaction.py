"""Secrets leave the plugin nowhere but in the call they belong to."""

import json
import re
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from internal.redaction import MOST_KEPT_IN_MIND, KnownSecrets, Redactor
from internal.secret_detection import (
    LONGEST_ERROR,
    REDACTED,
    looks_secret,
    may_name_secret,
    scrub,
    secrets_in,
    secrets_named_in,
)
from tests.unit.generators import readable_text

SECRET = 'p"ä/ss word'


@pytest.mark.parametrize(
    "key",
    [
        "api_key",
        "apiKey",
        "API-Key",
        "X-Api-Key",
        "openai_api_key",
        "apikey",
        "access_token",
        "accessToken",
        "token",
        "password",
        "db.password",
        "client_secret",
        "clientSecret",
        "secretKey",
        "Authorization",
        "credentials",
        "private_key",
        "Set-Cookie",
    ],
)
def test_a_key_that_names_a_secret_looks_secret(key: str) -> None:
    assert looks_secret(key)


@pytest.mark.parametrize(
    "key",
    ["max_tokens", "token_count", "next_page_token", "nextPageToken", "cursorToken", "author", "key", "secretary", ""],
)
def test_a_key_that_names_something_else_does_not(key: str) -> None:
    assert not looks_secret(key)


def test_secrets_are_found_below_their_keys_wherever_they_are() -> None:
    value = {
        "headers": [
            {"Authorization": "abcdef"},
            ("x", {"token": {"value": ["one", {"deep": "two"}, None, True], "n": 3}}),
        ],
        "q": "not me",
    }

    assert sorted(secrets_in(value)) == ["3", "abcdef", "one", "two"]
    assert list(secrets_in("text")) == []


@pytest.mark.parametrize(
    "written",
    [SECRET, repr(SECRET + "'"), json.dumps(SECRET), json.dumps(SECRET, ensure_ascii=False), quote(SECRET, "")],
)
def test_a_secret_is_replaced_however_it_is_written(written: str) -> None:
    text = Redactor.of([SECRET]).text(f"<{written}>")

    assert REDACTED in text
    assert "ss" not in text


def test_values_of_fewer_than_six_characters_stay() -> None:
    redactor = Redactor.of(["abcde", "abcdef"])

    assert redactor.text("abcde abcdef") == f"abcde {REDACTED}"
    assert redactor.secrets == {"abcdef"}


def test_the_longer_of_two_secrets_wins() -> None:
    assert Redactor.of(["secret", "secret-longer"]).text("secret-longer secret") == f"{REDACTED} {REDACTED}"


def test_secrets_side_by_side_and_of_one_beginning_are_all_replaced() -> None:
    redactor = Redactor.of(["secret-a", "secret-bb", "^-]\\[&~|"])

    assert redactor.text("secret-asecret-bbsecret-c") == f"{REDACTED}{REDACTED}secret-c"
    assert redactor.text("<^-]\\[&~|>") == f"<{REDACTED}>"


def test_a_secret_with_half_a_pair_is_replaced_as_it_is_and_as_it_is_written_out() -> None:
    redactor = Redactor.of(["abcdef\ud83d"])

    assert redactor.text("abcdef\ud83d abcdef?") == f"{REDACTED} {REDACTED}"


def test_what_is_looked_for_does_not_grow_with_the_number_of_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """One alternative for each of thousands of secrets would hold up every session of the process."""
    compiled: list[str] = []
    monkeypatch.setattr(re, "compile", compiled.append)

    Redactor.of(f"{number:05}-secret" for number in range(5_000))

    assert [len(pattern) < 200 for pattern in compiled] == [True]


def test_without_secrets_a_text_stays_as_it_is() -> None:
    assert Redactor.of([]).text("secret") == "secret"


@given(st.lists(readable_text, max_size=4), readable_text, readable_text)
@settings(deadline=None)
def test_no_secret_of_six_characters_survives(secrets: list[str], before: str, after: str) -> None:
    text = Redactor.of(secrets).text(before + "".join(secrets) + after)

    rest = text.replace(REDACTED, "\0")
    assert not [secret for secret in secrets if len(secret) >= 6 and secret in rest and secret not in REDACTED]


def test_json_is_redacted_by_value_and_by_key_and_keeps_its_shape() -> None:
    redactor = Redactor.of(["known-value"])

    assert redactor.json(
        {
            "api_key": "under-a-key",
            "list": ["under-a-key known-value", 1, None, True],
            "known-value": "as a key",
            "token": "short",
        }
    ) == {
        "api_key": REDACTED,
        "list": [f"{REDACTED} {REDACTED}", 1, None, True],
        REDACTED: "as a key",
        "token": "short",
    }


def test_a_redactor_learns_without_forgetting() -> None:
    first = Redactor.of(["secret-one"])
    second = first.knowing(["secret-two"])

    assert second.text("secret-one secret-two") == f"{REDACTED} {REDACTED}"
    assert first.text("secret-two") == "secret-two"


@pytest.mark.parametrize("known", [[], ["secret-one"], ["short"], ["secret-one", "five5"]], ids=repr)
def test_a_redactor_that_learns_nothing_new_is_the_same_one(known: list[str]) -> None:
    redactor = Redactor.of(["secret-one"])

    assert redactor.knowing(known) is redactor


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Incorrect API key provided: sk-proj-abcdefgh12345678.", "sk-proj-abcdefgh12345678"),
        ("push with ghp_abcdefghijklmnop1234", "ghp_abcdefghijklmnop1234"),
        ("xoxb-1234-abcd-5678", "xoxb-1234-abcd-5678"),
        ("key AIzaSyA1234567890abcdefghij", "AIzaSyA1234567890abcdefghij"),
        ("AKIAABCDEFGHIJKLMNOP", "AKIAABCDEFGHIJKLMNOP"),
        ("eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl", "eyJzdWIiOi"),
        ("Bearer 0123456789abcdef", "0123456789abcdef"),
        ("Authorization: Bearer 0123456789abcdef", "0123456789abcdef"),
        ('{"Authorization": "Basic dXNlcjpwYXNz"}', "dXNlcjpwYXNz"),
        ("https://host.test/?api_key=0123456789&q=1", "0123456789"),
        ('{"password": "correct-horse"}', "correct-horse"),
        ("postgres://user:correct-horse@db.test/x", "correct-horse"),
        ('{"args": {"description": "sent {\\"api_key\\": \\"abcdef123456\\"}"}}', "abcdef123456"),
        (json.dumps(json.dumps(json.dumps({"api_key": "abcdef123456", "q": 1}))), "abcdef123456"),
        ('{"password": "p,ss@w ord;1"}', "ss@w"),
        ('{"password": "p/ss", "passphrase": "\\u00e4-correct-horse', "horse"),
        ("password=correct\\horse", "horse"),
        ("aws_secret_access_key=wJalrXUtnFEMIK7MDENGbPx", "MDENG"),
        ('{"access_key": "wJalrXUtnFEM"}', "wJalrXUtnFEM"),
        ("private_key: MIIEvQIBADANBg", "MIIEvQIBADANBg"),
        ('{"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIEvQ\\n-----END', "MIIEvQ"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEvQ\nabc\n-----END", "MIIEvQ"),
        ("passwd=correct-horse", "correct-horse"),
        ("Cookie: session=abcdefgh123", "abcdefgh123"),
        ("Set-Cookie: a=1; session=abcdefgh123; Path=/", "abcdefgh123"),
        ("Incorrect API key provided: 0123456789abcdef", "0123456789abcdef"),
        ("the access key you sent is: 'abcdef-012345'", "abcdef-012345"),
        ("https://host.test/v1?key=abcdef0123456789", "abcdef0123456789"),
        ("https://host.test/v1?q=1&key=abcdef0123456789", "abcdef0123456789"),
        ("sk_live_51Habcdefghijk", "51Habcdefghijk"),
        ("said\\nsk-abcdefgh12345", "abcdefgh12345"),
        ("github_pat_11ABCDEFG0abcdefghijk", "11ABCDEFG0abcdefghijk"),
        ("hf_abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz"),
    ],
)
def test_what_has_the_shape_of_a_credential_is_scrubbed_from_texts_of_others(text: str, secret: str) -> None:
    assert secret not in scrub(text)
    assert REDACTED in scrub(text)


@pytest.mark.parametrize(
    "text",
    [
        "maximum context length is 8192 tokens",
        "The token count: 5 is fine",
        "see https://host.test/a?q=tokens",
        "the key is to try again: here is how",
        "tokens: 512000, max_tokens=100000",
        "maximum token limit: 128000",
        "primary_key=12345678 violates pk_customers_name",
        "hf_hub_download failed",
        "Incorrect API key: please check your account",
        "Your API key: generate one at https://host.test",
        "Invalid token: expired. password: required",
        "The cookie: could not be read",
        "https://host.test/a?monkey=abcdefgh",
        '{"token": "", "some_parameter": "value"}',
    ],
)
def test_innocent_texts_are_not_scrubbed(text: str) -> None:
    assert scrub(text) == text


def test_a_secret_that_is_a_number_is_replaced_as_a_whole_and_other_numbers_stay() -> None:
    value = {"token": 12345678, "again": [12345678, 1234567, True, 12345678.5]}

    assert Redactor.of([]).json(value) == {"token": REDACTED, "again": [REDACTED, 1234567, True, 12345678.5]}


def test_a_secret_at_the_end_of_what_is_read_of_an_error_leaves_no_half_behind() -> None:
    secret = "correct-horse-battery"

    assert "correct" not in Redactor.of([secret]).error("x" * (LONGEST_ERROR - 10) + secret)


def test_secrets_are_found_by_their_names_in_what_is_no_json() -> None:
    broken = '{"password": "correct-horse", "q": "plain words", "api_key": "0123456789'

    assert list(secrets_named_in(broken)) == ["correct-horse", "0123456789"]
    assert list(secrets_named_in("nothing of the kind")) == []


def test_an_error_loses_known_secrets_and_shapes() -> None:
    assert Redactor.of(["known-value"]).error("known-value sk-abcdefgh1") == f"{REDACTED} {REDACTED}"


@pytest.mark.parametrize("text", ['{"password": "x"', "apiKey", "my api key", "X-Api-Key:", "TOKENS"])
def test_a_text_may_name_a_secret_in_any_spelling(text: str) -> None:
    assert may_name_secret(text)


def test_a_text_without_such_a_name_does_not() -> None:
    assert not may_name_secret('{"q": "keyboards and cooking"')


def test_what_a_run_learns_has_an_end_and_is_still_redacted_where_it_is_named() -> None:
    known = KnownSecrets(Redactor())
    known.learn(f"first-{number}" for number in range(MOST_KEPT_IN_MIND))

    here = known.learn(["one-too-many-1"])

    assert here.text("one-too-many-1 first-7") == f"{REDACTED} {REDACTED}"
    assert known.redactor.text("one-too-many-1 first-7") == f"one-too-many-1 {REDACTED}"
