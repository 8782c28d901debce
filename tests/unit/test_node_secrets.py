"""Which values that the developer set are secrets."""

from typing import Any

import pytest

from internal.node.params import node_secrets
from tests.support.wire import parameter, tool

SECRET = "hunter2-hunter2"


def hides(raw: dict[str, Any], text: str = SECRET) -> bool:
    return text not in node_secrets([raw]).text(f"<{text}>")


@pytest.mark.parametrize(
    "raw",
    [
        tool("a", parameter("pin", "secret-input", form="form"), runtime_parameters={"pin": SECRET}),
        tool("a", parameter("pin", "secret-input"), runtime_parameters={"pin": SECRET}),
        tool("a", parameter("token", form="form"), runtime_parameters={"token": SECRET}),
        tool("a", runtime_parameters={"api_key": SECRET}),
        tool("a", runtime_parameters={"headers": [{"Authorization": SECRET}]}),
        tool("a", runtime_parameters={"credentials": {"user": [SECRET]}}),
    ],
    ids=["by type", "by type, of the model's form", "by name", "undeclared", "by a name within", "below a name"],
)
def test_a_value_is_secret_by_its_parameters_type_or_name(raw: dict[str, Any]) -> None:
    assert hides(raw)


def test_a_secret_number_is_one_too() -> None:
    assert hides(tool("a", runtime_parameters={"password": 12345678}), "12345678")


@pytest.mark.parametrize(
    "raw",
    [
        tool("a", runtime_parameters={"city": SECRET}),
        tool("a", parameter("token", "select", form="form"), runtime_parameters={"token": SECRET}),
        tool("a", runtime_parameters={"next_page_token": SECRET}),
        tool("a", parameter("token", default=SECRET)),
        {"runtime_parameters": [SECRET], "parameters": [SECRET]},
        {},
    ],
    ids=["another name", "an option", "a cursor", "a default", "odd", "nothing"],
)
def test_any_other_value_is_not(raw: dict[str, Any]) -> None:
    assert not hides(raw)


def test_a_limit_that_is_called_a_token_is_not() -> None:
    limit = tool("a", parameter("max_token", "number", form="form"), runtime_parameters={"max_token": 100_000})

    assert not hides(limit, "100000")


def test_all_tools_count_and_only_their_texts_of_six_characters_and_more() -> None:
    redactor = node_secrets(
        [tool("a", runtime_parameters={"token": "short"}), tool("b", runtime_parameters={"token": SECRET})]
    )

    assert redactor.text(f"short {SECRET}") == "short [redacted]"
