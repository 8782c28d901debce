"""The id of a call that waits tells whether it is still the call that the user saw."""

import hashlib
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.approval.identity import call_id, is_same_call
from internal.approval.pending import PendingCall
from tests.unit.generators import any_text, json_objects

ORDER = ("shop/shop", "order", {"item": "tea", "count": 1})


def test_an_id_is_a_number_and_a_digest_of_the_call() -> None:
    canonical = '["shop/shop","order",{"count":1,"item":"tea"}]'

    assert call_id(3, *ORDER) == f"call_3_{hashlib.sha256(canonical.encode()).hexdigest()[:8]}"


@given(st.integers(1), any_text, any_text, json_objects)
def test_an_id_fits_its_own_call(number: int, provider: str, tool: str, arguments: dict[str, Any]) -> None:
    identifier = call_id(number, provider, tool, arguments)

    assert re.fullmatch(rf"call_{number}_[0-9a-f]{{8}}", identifier)
    assert is_same_call(identifier, provider, tool, dict(reversed(arguments.items())))


@pytest.mark.parametrize(
    ("provider", "tool", "arguments"),
    [
        ("shop/other", "order", {"item": "tea", "count": 1}),
        ("shop/shop", "cancel", {"item": "tea", "count": 1}),
        ("shop/shop", "order", {"item": "tea", "count": 2}),
        ("shop/shop", "order", {"item": "tea", "count": 1.0}),
        ("shop/shop", "order", {"item": "tea", "count": True}),
        ("shop/shop", "order", {"item": "tea", "count": "1"}),
        ("shop/shop", "order", {"item": "tea"}),
        ("shop/shop", "order", {}),
        ("shop/", "shoporder", {"item": "tea", "count": 1}),
    ],
)
def test_another_call_does_not_fit(provider: str, tool: str, arguments: dict[str, Any]) -> None:
    assert not is_same_call(call_id(1, *ORDER), provider, tool, arguments)


@pytest.mark.parametrize(
    "change",
    [
        lambda own: own[:0],
        lambda own: own[-8:],
        lambda own: own.removeprefix("call_"),
        lambda own: own.upper(),
        lambda own: own + "0",
        lambda own: own + "\n",
        lambda own: own[:-1],
        lambda own: own.replace("call_1", "call_"),
        lambda own: own.replace("call_1", "call_١"),
    ],
)
def test_what_is_not_an_id_fits_no_call(change: Any) -> None:  # noqa: ANN401 - a function of a text
    own = call_id(1, *ORDER)

    assert is_same_call(own, *ORDER)
    assert not is_same_call(change(own), *ORDER)


def test_the_variable_names_a_subtask_only_where_there_is_one() -> None:
    item = {"id": "call_1_00000000", "tool": "order", "arguments": {"item": "tea"}}

    assert PendingCall("call_1_00000000", "order", {"item": "tea"}).as_variable() == item
    assert PendingCall("call_1_00000000", "order", {"item": "tea"}, "Buy").as_variable() == {**item, "subtask": "Buy"}
