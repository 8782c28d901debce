"""Dify's casting rules, where test_node_parameters.py has no recording of them."""

from typing import Any

import pytest

from devhost.errors import ParameterError
from devhost.plugin.casting import cast_parameter
from devhost.plugin.declaration import Parameter

FILE = {"dify_model_identity": "__dify__file__", "url": "http://files/1", "type": "image"}
OPTIONS = [{"value": "a", "label": {"en_US": "A"}}, {"value": "b", "label": {"en_US": "B"}}]


def declared(kind: str, **more: object) -> Parameter:
    return Parameter.model_validate({"name": "p", "label": {"en_US": "P"}, "type": kind, **more})


@pytest.mark.parametrize(
    ("kind", "more", "value", "expected"),
    [
        ("select", {"options": OPTIONS, "multiple": True}, ["b", "a"], ["b", "a"]),
        ("select", {"options": OPTIONS, "multiple": True, "default": ["b"]}, [], ["b"]),
        ("select", {"options": OPTIONS, "multiple": True}, None, []),
        ("dynamic-select", {"multiple": True}, "c", ["c"]),
        ("files", {}, FILE, [FILE]),
        ("file", {}, FILE, FILE),
        ("file", {}, [FILE], FILE),
    ],
)
def test_values_that_no_recording_has(kind: str, more: dict[str, Any], value: object, expected: object) -> None:
    assert cast_parameter(declared(kind, **more), value) == expected


@pytest.mark.parametrize(
    ("kind", "more", "value", "words"),
    [
        ("select", {"options": OPTIONS, "required": True}, "", "p is empty: it needs a value"),  # before the options
        ("select", {"options": [{"value": "1", "label": {"en_US": "1"}}]}, 1, "value 1 not in options"),
        ("model-selector", {}, "gpt-5", "The selector must be a dictionary"),
        ("file", {}, [FILE, FILE], "only accepts one file"),
    ],
)
def test_refusals_that_no_recording_has(kind: str, more: dict[str, Any], value: object, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        cast_parameter(declared(kind, **more), value)
