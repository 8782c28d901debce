"""ModelSelection: what the model parameter says, read leniently."""

from typing import Any

import pytest
from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    PromptMessage,
    ToolPromptMessage,
    UserPromptMessage,
)

from internal.node.model import ModelSelection
from tests.support.builders import sdk_call
from tests.support.wire import model


def select(raw: object) -> tuple[ModelSelection, list[str]]:
    notes: list[str] = []
    return ModelSelection.read(raw, notes.append), notes


def test_the_plain_config_goes_into_a_request_without_entity_history_and_stop_words() -> None:
    """Requests have a field of their own for stop words."""
    selection, notes = select(model(completion_params={"max_tokens": 100, "stop": ["x"]}, mode=None))

    assert selection.config.model_dump(mode="json") == {
        "provider": "langgenius/openai/openai",
        "model": "gpt-5-scripted",
        "model_type": "llm",
        "mode": "chat",
        "completion_params": {"max_tokens": 100},
    }
    assert (selection.context_size, selection.stop, notes) == (400_000, ("x",), [])


@pytest.mark.parametrize(
    ("stop", "words"), [("x", ("x",)), (["x", "", None, 3, "y"], ("x", "y")), ([], ()), (None, ()), ({"x": 1}, ())]
)
def test_stop_words_are_a_word_or_a_list(stop: object, words: tuple[str, ...]) -> None:
    assert select(model(completion_params={"stop": stop}))[0].stop == words


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, 0), (100, 100), ("100", 100), (0, 0), (-3, 0), ("many", 0), (float("inf"), 0), ([1], 0)],
)
def test_sizes_may_be_texts_and_odd_ones_are_unset(value: object, expected: int) -> None:
    assert select(model(completion_params={"max_tokens": value}))[0].max_tokens == expected
    assert select(model(context_size=value))[0].context_size == (expected or None)


@pytest.mark.parametrize("features", [None, ["tool-call"], ["multi-tool-call"], ["stream-tool-call"]], ids=repr)
def test_a_model_without_an_entity_is_tried(features: list[str] | None) -> None:
    """One without the feature: tests/agent/test_node_errors.py."""
    assert select(model(features=features))[0].can_call_tools()


@pytest.mark.parametrize(
    "odd",
    [
        {"entity": {}},
        {"entity": {"features": None, "model_properties": None}, "completion_params": None},
        {"entity": {"features": "odd", "model_properties": 7}, "completion_params": [], "history_prompt_messages": {}},
    ],
    ids=repr,
)
def test_what_is_empty_or_odd_is_nothing(odd: dict[str, Any]) -> None:
    selection, notes = select({**model(), **odd})

    assert (selection.features, selection.context_size) == (frozenset(), None)
    assert (selection.config.completion_params, selection.history) == ({}, ())
    assert notes == []


ODD_ROLES: list[object] = ["developer", "narrator", [], "tool"]  # of a tool: without an id
ODD_MESSAGES = [
    *({"role": role, "content": "x"} for role in ODD_ROLES),
    {"role": "user", "content": [{"type": "hologram"}]},
    *({"content": "x"}, "text", None),
]


@pytest.mark.parametrize("odd", ODD_MESSAGES, ids=repr)
def test_the_history_is_read_in_order_and_an_unreadable_message_is_left_out(odd: object) -> None:
    history: list[PromptMessage] = [
        UserPromptMessage(content="before"),
        AssistantPromptMessage(content="", tool_calls=[sdk_call("c1", "search")]),
        ToolPromptMessage(content="found", tool_call_id="c1", name="search"),
    ]

    written = [each.model_dump(mode="json") for each in history]
    selection, (note,) = select(model(history_prompt_messages=[odd, *written]))

    assert list(selection.history) == history
    assert "message 1" in note
