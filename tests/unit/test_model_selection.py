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
from tests.support.wire import model
from tests.unit.builders import sdk_call


def select(raw: object) -> tuple[ModelSelection, list[str]]:
    notes: list[str] = []
    return ModelSelection.read(raw, notes.append), notes


def history_with_a_tool_call() -> list[PromptMessage]:
    return [
        UserPromptMessage(content="before"),
        AssistantPromptMessage(content="", tool_calls=[sdk_call("c1", "search")]),
        ToolPromptMessage(content="found", tool_call_id="c1", name="search"),
    ]


def test_the_plain_config_goes_into_a_request_without_entity_and_history() -> None:
    selection, notes = select(model(completion_params={"max_tokens": 100}))

    assert selection.config.model_dump(mode="json") == {
        "provider": "langgenius/openai/openai",
        "model": "gpt-5-scripted",
        "model_type": "llm",
        "mode": "chat",
        "completion_params": {"max_tokens": 100},
    }
    assert selection.context_size == 400_000
    assert notes == []


@pytest.mark.parametrize("params", [None, "", [], {}], ids=repr)
def test_empty_completion_params_are_an_empty_object(params: object) -> None:
    assert select(model(completion_params=params))[0].config.completion_params == {}


@pytest.mark.parametrize(
    ("stop", "words"),
    [(["x", "y"], ("x", "y")), ("x", ("x",)), (["x", "", None, 3], ("x",)), ([], ()), (None, ()), ({"x": 1}, ())],
)
def test_stop_words_are_taken_out_of_the_completion_params(stop: object, words: tuple[str, ...]) -> None:
    selection, notes = select(model(completion_params={"stop": stop, "verbosity": "low"}))

    assert selection.config.completion_params == {"verbosity": "low"}
    assert selection.stop == words
    assert notes == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, 0), (100, 100), ("100", 100), (0, 0), (-3, 0), ("many", 0), (float("inf"), 0), ([1], 0)],
)
def test_max_tokens_is_what_the_developer_reserved(value: object, expected: int) -> None:
    assert select(model(completion_params={"max_tokens": value}))[0].max_tokens == expected


@pytest.mark.parametrize(
    ("features", "can_call"),
    [
        (None, True),
        ([], False),
        (["vision"], False),
        (["tool-call"], True),
        (["multi-tool-call"], True),
        (["stream-tool-call"], True),
    ],
    ids=repr,
)
def test_a_model_without_an_entity_is_tried_and_one_without_the_feature_is_not(
    features: list[str] | None,
    can_call: bool,  # noqa: FBT001 - a table
) -> None:
    assert select(model(features=features))[0].can_call_tools() is can_call


@pytest.mark.parametrize(
    "entity",
    [{}, {"features": None, "model_properties": None}, {"features": "odd", "model_properties": {"context_size": "?"}}],
    ids=repr,
)
def test_an_empty_entity_has_no_features_and_no_context_size(entity: dict[str, Any]) -> None:
    selection, notes = select({**model(), "entity": entity})

    assert selection.features == frozenset()
    assert selection.context_size is None
    assert notes == []


@pytest.mark.parametrize("size", [128_000, "128000"], ids=repr)
def test_the_context_size_may_be_a_text(size: object) -> None:
    assert select(model(context_size=size))[0].context_size == 128_000


def test_the_history_is_read_in_order() -> None:
    raw = [message.model_dump(mode="json") for message in history_with_a_tool_call()]

    selection, notes = select(model(history_prompt_messages=raw))

    assert list(selection.history) == history_with_a_tool_call()
    assert notes == []


@pytest.mark.parametrize(
    "odd",
    [
        {"role": "developer", "content": "x"},
        {"role": "narrator", "content": "x"},
        {"role": [], "content": "x"},
        {"content": "x"},
        {"role": "tool", "content": "no id"},
        {"role": "user", "content": [{"type": "hologram"}]},
        "text",
        None,
    ],
    ids=repr,
)
def test_an_unreadable_message_of_the_history_is_left_out(odd: object) -> None:
    kept = {"role": "user", "content": "kept"}

    selection, notes = select(model(history_prompt_messages=[odd, kept]))

    assert [message.content for message in selection.history] == ["kept"]
    assert len(notes) == 1
    assert "message 1" in notes[0]


@pytest.mark.parametrize("history", [None, "", {}], ids=repr)
def test_a_history_that_is_none_is_empty(history: object) -> None:
    assert select(model(history_prompt_messages=history))[0].history == ()


def test_a_missing_mode_is_chat() -> None:
    assert select(model(mode=None))[0].config.mode == "chat"
