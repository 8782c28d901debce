"""Secrets disappear from whatever shape of data they stand in, however it spells them."""

from devhost.run import RunError
from devhost.secrets import Secrets

SECRETS = Secrets(["s3cret/value", "short", 'quo"te"d-one'])


def test_every_shape_is_searched() -> None:
    data = {"s3cret/value": ["a s3cret/value b", ("s3cret/value", 3, None)], "error": RunError("E", "s3cret/value")}
    assert SECRETS.masked(data) == {
        "[secret]": ["a [secret] b", ("[secret]", 3, None)],
        "error": RunError("E", "[secret]"),
    }


def test_urls_and_json_spell_it_differently() -> None:
    assert SECRETS.masked("https://x.example/?key=s3cret%2Fvalue") == "https://x.example/?key=[secret]"
    assert SECRETS.masked(r'{"a": "quo\"te\"d-one"}') == '{"a": "[secret]"}'


def test_too_short_is_no_secret() -> None:
    assert SECRETS.masked("a short text") == "a short text"


def test_nothing_to_hide_changes_nothing() -> None:
    data = {"a": 1}
    assert Secrets().masked(data) is data


def test_the_longest_goes_first() -> None:
    assert Secrets(["abcdef", "abcdefgh"]).masked("abcdefgh") == "[secret]"
