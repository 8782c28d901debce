"""How secrets are recognised by name and shape."""

import pytest

from internal.text.secrets import looks_secret, texts_in, without_named


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


def test_the_texts_of_a_value_are_its_leaves_numbers_as_text() -> None:
    assert list(texts_in({"a": ["x", 12, None, True], "b": {"c": "y"}, "d": 1.5})) == ["x", "12", "y", "1.5"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("api_key=hunter2-hunter2", "api_key=[redacted]"),
        ('"password": "correct horse battery"', '"password": "[redacted]"'),
        (r"\"password\": \"hunter2\"", r"\"password\": \"[redacted]\""),
        ("Authorization: Bearer hunter2", "Authorization: Bearer [redacted]"),
        ("Incorrect API key provided: hunter2", "Incorrect API key provided: [redacted]"),
        ("http://host/?key=hunter2", "http://host/?key=[redacted]"),
        ('"token": "hunter2"', '"token": "[redacted]"'),
        ("token: hunter2", "token: hunter2"),
        ("API key provided: nothing here", "API key provided: nothing here"),
        ("password: required", "password: required"),
        ("api_key=short", "api_key=short"),
    ],
)
def test_the_value_behind_a_secrets_name_is_replaced(text: str, shown: str) -> None:
    assert without_named(text) == shown
