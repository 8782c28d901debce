"""The id of a call that waits tells whether it is still the call that the user saw."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.memory.approval import call_id, is_same_call
from internal.node.tools import Tool
from tests.support.wire import parameter
from tests.unit.builders import file, parameter_of, tool_of
from tests.unit.generators import any_text, json_objects

TEA = {"item": "tea", "count": 1}
ORDER = Tool("order", "order", "shop/shop", setting="5e771119")
SENDS = replace(tool_of(parameter("doc", "file"), parameter("docs", "files"), files=(file("a.pdf"),)), setting="")
OFFER = "http://host.test/files/1/file-preview?timestamp=1&nonce=2&sign=3"


def test_an_id_is_a_number_and_a_digest_of_the_call() -> None:
    canonical = '["shop/shop","order","5e771119",{"count":1,"item":"tea"},[]]'

    assert call_id(3, with_parameters(ORDER, TEA), TEA, {}) == (
        f"call_3_{hashlib.sha256(canonical.encode()).hexdigest()[:8]}"
    )


def with_parameters(tool: Tool, arguments: Mapping[str, Any]) -> Tool:
    return replace(tool, parameters={name: parameter_of() for name in arguments})


def fits(identifier: str, arguments: Mapping[str, Any], tool: Tool = ORDER) -> bool:
    return is_same_call(identifier, with_parameters(tool, arguments), arguments, {})


@given(st.integers(1), any_text, any_text, json_objects)
def test_an_id_fits_its_own_call(number: int, provider: str, name: str, arguments: dict[str, Any]) -> None:
    tool = with_parameters(Tool("order", name, provider), arguments)
    identifier = call_id(number, tool, arguments, {})

    assert re.fullmatch(rf"call_{number}_[0-9a-f]{{8}}", identifier)
    assert is_same_call(identifier, tool, dict(reversed(arguments.items())), {})


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
    own = call_id(1, with_parameters(ORDER, TEA), TEA, {})

    assert not fits(own, arguments, tool)


@pytest.mark.parametrize(
    ("url", "size", "is_same"),
    [
        (OFFER, 12, True),
        ("http://host.test/files/1/file-preview?timestamp=9&nonce=8&sign=7", 12, True),
        (OFFER, 13, False),
        (OFFER.replace("/1/", "/2/"), 12, False),
        (OFFER.replace("host", "other"), 12, False),
        (f"{OFFER}&page=2", 12, False),
        ("http://[host", 12, False),
    ],
)
@pytest.mark.parametrize("arguments", [{"doc": "a.pdf"}, {"docs": ["a.pdf"]}])
def test_a_file_is_the_same_behind_another_signature_only(
    arguments: dict[str, Any], url: str, size: int, *, is_same: bool
) -> None:
    own = call_id(1, SENDS, arguments, {"a.pdf": file("a.pdf", url=OFFER, size=12)})

    assert is_same_call(own, SENDS, arguments, {"a.pdf": file("a.pdf", url=url, size=size)}) == is_same


def test_what_is_not_an_id_fits_no_call() -> None:
    own = call_id(1, with_parameters(ORDER, TEA), TEA, {})
    others = [own[:0], own[-8:], own.removeprefix("call_"), own.upper(), own + "0", own + "\n", own[:-1]]

    assert fits(own, TEA)
    for other in (*others, own.replace("call_1", "call_"), own.replace("call_1", "call_١")):
        assert not fits(other, TEA)
