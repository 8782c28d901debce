"""JSON as Go writes it; the expected texts are what Go 1.26's own encoding/json printed for them."""

import json

import pytest

from devhost.golang import marshalled, remarshalled


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (9007199254740993, "9007199254740992"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (123456789012345678901234, "1.2345678901234569e+23"),
        (0.1, "0.1"),
        ('\n"\\/é', '"\\n\\"\\\\/é"'),
        ({"a": [None, True, {}]}, '{"a":[null,true,{}]}'),
    ],
)
def test_values_as_go_writes_them(value: object, text: str) -> None:
    assert marshalled(remarshalled(value)) == text


def test_keys_are_sorted_and_surrogates_replaced() -> None:
    value = {"b": 1, "é": 1, "B": "\ud800", "_": "\ud83d\ude00", "\uffff": 2, "\U0001f600": 1}
    assert json.dumps(remarshalled(value)) == json.dumps(
        {"B": "\ufffd", "_": "\U0001f600", "b": 1, "é": 1, "\uffff": 2, "\U0001f600": 1}
    )
