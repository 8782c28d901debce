"""Secrets are replaced in all kinds of data and in all spellings."""

import json
import re
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest

from devhost.node.outputs.run import RunError
from devhost.text import Secrets

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


def in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def in_lower_case(text: str) -> str:
    return re.sub("%..", lambda code: code[0].lower(), quote(text))


SPELLINGS: list[Callable[[str], str]] = [str, quote, quote_plus, in_lower_case, json.dumps, in_json, repr, ascii]
QUOTES = r"""(?:[\\"']|%(?:25)*(?:22|27|5c))*"""
"""What a spelling puts around a text."""


@pytest.mark.parametrize("around", [*SPELLINGS, lambda text: in_json(in_json(text))])
@pytest.mark.parametrize("spelled", SPELLINGS)
@pytest.mark.parametrize(
    "secret", ["ck_ab/cd+ef==", 'a "b" \\c\\\\d', "it's\ta\\\nb\x7fc", "\\\\host\\näme 😀", "100%&more"]
)
def test_one_spelling_within_another(secret: str, spelled: Callable[[str], str], around: Callable[[str], str]) -> None:
    masked = Secrets([secret]).masked(around(f"begin{spelled(secret)}end"))
    assert re.fullmatch(rf"{QUOTES}begin{QUOTES}\[secret\]{QUOTES}end{QUOTES}", masked, re.IGNORECASE), masked


def test_half_a_surrogate_pair_comes_back_as_the_host_sent_it() -> None:
    assert Secrets(["half \udcff"]).masked("half \ufffd") == "[secret]"


def test_short_values_are_not_replaced() -> None:
    assert SECRETS.masked("a short text") == "a short text"


def test_a_whole_value_is_known_however_short() -> None:
    known = Secrets(["abc", ""])
    assert [known.is_secret(value) for value in ("abc", "abcd", "", 5, None)] == [True, False, False, False, False]


def test_nothing_to_hide_changes_nothing() -> None:
    data = {"a": 1}
    assert Secrets().masked(data) is data


def test_longer_secrets_are_replaced_first() -> None:
    assert Secrets(["abcdef", "abcdefgh"]).masked("abcdefgh") == "[secret]"
