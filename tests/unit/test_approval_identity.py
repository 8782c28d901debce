"""The id of a call that waits tells whether it is still the call that the user saw."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from internal.memory.approval import call_id, is_same_call
from internal.node.tools import Tool
from tests.support.builders import file, parameter_of, tool_of
from tests.support.wire import parameter

TEA = {"item": "tea", "count": 1}
ORDER = Tool("order", "order", "shop/shop", setting="5e771119")
SENDS = replace(tool_of(parameter("doc", "file"), parameter("docs", "files"), files=(file("a.pdf"),)), setting="")
OFFER = "http://host.test/files/1/file-preview?timestamp=1&nonce=2&sign=3"
CANONICAL = '["shop/shop","order","5e771119",{"count":1,"item":"tea"},[]]'
OWN = f"call_3_{hashlib.sha256(CANONICAL.encode()).hexdigest()[:8]}"


def with_parameters(tool: Tool, arguments: Mapping[str, Any]) -> Tool:
    return replace(tool, parameters={name: parameter_of() for name in arguments})


def fits(identifier: str, arguments: Mapping[str, Any], tool: Tool = ORDER) -> bool:
    return is_same_call(identifier, with_parameters(tool, arguments), arguments, {})


def test_an_id_is_a_number_and_a_digest_of_the_call_and_nothing_else_fits() -> None:
    others = [OWN[:0], OWN[-8:], OWN.removeprefix("call_"), OWN.upper(), OWN + "0", OWN + "\n", OWN[:-1]]

    assert call_id(3, with_parameters(ORDER, TEA), TEA, {}) == OWN
    assert fits(OWN.replace("call_3", "call_12"), dict(reversed(TEA.items())))
    assert not any(fits(other, TEA) for other in (*others, OWN.replace("3", "", 1), OWN.replace("3", "١", 1)))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (replace(ORDER, provider="shop/other"), TEA),
        (replace(ORDER, own_name="cancel"), TEA),
        (replace(ORDER, setting="0a0b0c0d"), TEA),
        (replace(ORDER, provider="shop/", own_name="shoporder"), TEA),
        *((ORDER, {"item": "tea", "count": count}) for count in (2, 1.0, True, "1")),
        *((ORDER, arguments) for arguments in ({"item": "tea"}, {})),
    ],
)
def test_another_call_does_not_fit(tool: Tool, arguments: dict[str, Any]) -> None:
    assert not fits(OWN, arguments, tool)


@pytest.mark.parametrize(
    ("url", "size", "is_same"),
    [
        (OFFER, 12, True),
        ("http://host.test/files/1/file-preview?timestamp=9&nonce=8&sign=7", 12, True),
        (OFFER, 13, False),
        *((url, 12, False) for url in (OFFER.replace("/1/", "/2/"), OFFER.replace("host", "other"), f"{OFFER}&page=2")),
        ("http://[host", 12, False),
    ],
)
@pytest.mark.parametrize("arguments", [{"doc": "a.pdf"}, {"docs": ["a.pdf"]}])
def test_a_file_is_the_same_behind_another_signature_only(
    arguments: dict[str, Any], url: str, size: int, *, is_same: bool
) -> None:
    own = call_id(1, SENDS, arguments, {"a.pdf": file("a.pdf", url=OFFER, size=12)})

    assert is_same_call(own, SENDS, arguments, {"a.pdf": file("a.pdf", url=url, size=size)}) == is_same
