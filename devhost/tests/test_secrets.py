"""Secrets are replaced in all kinds of data and in all spellings."""

import json
import re
from collections.abc import Callable
from urllib.parse import quote

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


@pytest.mark.parametrize("around", [str, json.dumps, lambda text: json.dumps(json.dumps(text, ensure_ascii=False))])
@pytest.mark.parametrize("spelled", [str, quote])
@pytest.mark.parametrize("secret", ["ck_ab/cd+ef==", 'a "b" \\c\\\\d', "it's\ta\\\nb\x7fc", "\\\\host\\näme 😀"])
def test_json_holds_other_spellings(secret: str, spelled: Callable[[str], str], around: Callable[[str], str]) -> None:
    masked = Secrets([secret]).masked(around(f"begin {spelled(secret)} end"))
    assert re.fullmatch(r"""[\\"]*begin [\\"]*\[secret\][\\"]* end[\\"]*""", masked), masked


def test_half_a_surrogate_pair_comes_back_as_the_host_sent_it() -> None:
    assert Secrets(["half \udcff"]).masked("half \ufffd") == "[secret]"


def test_a_whole_value_is_known_however_short() -> None:
    assert SECRETS.masked("a short text") == "a short text", "within a text it may be a word"
    known = Secrets(["abc", ""])
    assert [known.is_secret(value) for value in ("abc", "abcd", "", 5, None)] == [True, False, False, False, False]


def test_longer_secrets_are_replaced_first() -> None:
    assert Secrets(["abcdef", "abcdefgh"]).masked("abcdefgh") == "[secret]"
