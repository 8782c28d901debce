"""The node's parameters and its model in every shape in which Dify sends them, and the secrets in them."""

from typing import Any

import hypothesis
import pytest
from dify_plugin.entities.model.message import (
    AssistantPromptMessage,
    PromptMessage,
    ToolPromptMessage,
    UserPromptMessage,
)
from dify_plugin.file.entities import FileType
from dify_plugin.file.file import File
from hypothesis import strategies as st
from pydantic import BaseModel

from internal.errors import InvalidParameters
from internal.node.model import ModelSelection
from internal.node.params import ExtraOutput, StrategyParams, Text, node_secrets
from internal.text.secrets import Redactor
from tests.support.builders import sdk_call
from tests.support.generators import any_text, json_values
from tests.support.local_http import file
from tests.support.wire import model, parameter, tool

SECRET = "hunter2-hunter2"
FILE = file("http://host.test/a.png")
NAMES = set(StrategyParams.model_fields) - {"model", "query"}


def read(**given: Any) -> StrategyParams:  # noqa: ANN401 - whatever a host may send
    return StrategyParams.model_validate({"model": model(), "query": "Why?", **given})


@pytest.mark.parametrize("value", [None, "", [], [None], {}], ids=repr)
def test_what_the_user_left_alone_and_what_a_saved_node_lacks_is_the_default_without_a_note(value: object) -> None:
    """tests/test_declarations.py compares the defaults with those of the YAML."""
    lacking = read()

    assert lacking.notes == ()
    assert (lacking.maximum_iterations, lacking.tools, lacking.instruction, lacking.context) == (6, (), "", None)
    assert read(**dict.fromkeys(NAMES, value)) == lacking


NUMBERS = [
    ("maximum_iterations", "3", 3),
    ("tool_result_limit", "1e3", 1000),
    ("maximum_seconds", "45.5", 45),
    ("tools_in_prompt", "0", 0),
    ("maximum_total_tokens", 0, 0),
    ("maximum_total_tokens", 3.9, 3),
    ("maximum_total_tokens", 0.4, 1),
]
SWITCHES = [
    (name, given, given in (True, "true", " Yes "))
    for given in (True, False, 1, 0, "true", " Yes ", "off")
    for name in ("emit_intermediate_thoughts", "show_sources")
]
LISTS = [
    (name, given, expected)
    for given, expected in [
        ("search", ("search",)),
        ("search, acme/clock\n  fetch ,,\n", ("search", "acme/clock", "fetch")),
        (["search", "a,b", None, ""], ("search", "a", "b")),
        ("search，fetch、acme/clock", ("search", "fetch", "acme/clock")),
        (7, ("7",)),
    ]
    for name in ("allowed_tools", "approval_required")
]
ODD_LISTS_OF_TOOLS_THAT_NEED_APPROVAL = [
    # Kept, so that no tool can match them: read as nothing, they would let every tool run.
    ("approval_required", {"pay": True}, ('{"pay": true}',)),
    ("approval_required", " \n , ", (",",)),
    ("approval_required", "[]", ("[]",)),
    ("approval_required", " \n", ()),
]
EXTRA_OUTPUTS = [
    ("extra_outputs", "state, tool_results\nthoughts", {"state", "tool_results", "thoughts"}),
    ("extra_outputs", " State ,STATE,, ", {"state"}),
    ("extra_outputs", ["thoughts", None, "state"], {"thoughts", "state"}),
    ("extra_outputs", "['state', 'thoughts']", {"state", "thoughts"}),
    ("extra_outputs", '["tool_results"]', {"tool_results"}),
    ("extra_outputs", " \n , ", set()),
]
TEXTS = [
    ("query", 5, "5"),
    ("query", "lone x\ud83dy", "lone x?y"),
    ("query", ["parsed by Dify"], '["parsed by Dify"]'),
    ("query", {"t": "\ud83d日"}, '{"t": "?日"}'),
    *(("state", given, given) for given in ("null", "[]", f"1.{SECRET}==", "start.state", ' {"a": 1} ')),
]


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [*NUMBERS, *SWITCHES, *LISTS, *ODD_LISTS_OF_TOOLS_THAT_NEED_APPROVAL, *EXTRA_OUTPUTS, *TEXTS],
    ids=lambda value: ascii(value)[:40],
)
def test_a_value_is_read_from_every_shape_that_means_it(name: str, given: object, expected: object) -> None:
    params = read(**{name: given})

    assert getattr(params, name) == expected
    assert type(getattr(params, name)) in (type(expected), frozenset)
    assert params.notes == ()


GONE = "'start.gone' looks like a variable that does not exist"
NOTED: list[tuple[str, Any, Any, str]] = [
    ("maximum_iterations", 0, 1, "0 is outside 1 to 100; 1 is used"),
    ("maximum_seconds", "inf", 3_600, "inf is outside 30 to 3600; 3600 is used"),
    ("maximum_seconds", float("-inf"), 30, "-inf is outside 30 to 3600; 30 is used"),
    ("maximum_total_tokens", "-0.5", 0, "-0.5 is below 0; 0, which means no limit, is used"),
    *(
        ("maximum_tool_calls", given, 0, "not a number; 0, which means no limit, is used")
        for given in (True, "abc", float("nan"), "NaN", "inf", "1" + 400 * "0", {"a": 1}, [3], 10**400)
    ),
    ("maximum_iterations", "abc", 6, "not a number; 6 is used"),
    ("show_sources", {"a": 1}, True, "neither true nor false; true is used"),
    (
        "extra_outputs",
        "state, use, Use",
        {"state"},
        "'use', 'Use' is ignored; the names are state, tool_results, thoughts",
    ),
    ("extra_outputs", " start.gone ", set(), GONE),
    ("approval", " start.gone ", "", GONE),
    ("answer_criteria", " start.gone ", " start.gone ", GONE),  # a person may have typed it
    ("tools", [tool("first"), "odd", None], (tool("first"),), "item 2 cannot be read and is left out"),
    ("files", [{"url": "x"}, FILE], (File.model_validate(FILE),), "item 1 cannot be read and is left out"),
]


@pytest.mark.parametrize(("name", "given", "expected", "note"), NOTED, ids=lambda value: ascii(value)[:40])
def test_an_unusable_value_is_changed_and_noted(name: str, given: object, expected: object, note: str) -> None:
    params = read(**{name: given})

    assert getattr(params, name) == expected
    (noted,) = params.notes
    assert noted.startswith(f"{name}: {note}")


odd_texts = st.sampled_from(["1" + 400 * "0", "-inf", "[None]", "['*']", '{"a": 1}', "start.x"])


@hypothesis.given(st.dictionaries(st.sampled_from(sorted(NAMES)), json_values | any_text | st.floats() | odd_texts))
def test_no_value_of_a_parameter_makes_a_run_impossible(given: dict[str, Any]) -> None:
    params = read(**given)

    assert min(params.maximum_total_tokens, params.maximum_tool_calls) >= 0
    assert all(isinstance(text, str) for text in (params.approval, params.state, params.fallback_model))
    assert all(name.strip() == name != "" for name in (*params.allowed_tools, *params.approval_required))
    assert params.extra_outputs <= set(ExtraOutput)


def test_a_tool_may_come_as_an_entity_and_a_file_as_the_sdks() -> None:
    class Entity(BaseModel):
        identity: dict[str, str]
        parameters: list[dict[str, Any]]

    entity = Entity(identity={"name": "search"}, parameters=[parameter("q")])

    assert read(tools=[entity]).tools == (entity.model_dump(mode="json"),)
    for given in ([File.model_validate(FILE)], FILE, [None, FILE]):
        (taken,) = read(files=given).files
        assert (taken.type, taken.filename) == (FileType.IMAGE, "a.png")


@pytest.mark.parametrize(
    "given", [None, "", {}, [], "gpt", {"provider": "p"}, {"provider": "", "model": "m"}], ids=repr
)
def test_a_run_without_a_model_is_refused_in_one_sentence(given: object) -> None:
    with pytest.raises(InvalidParameters, match=r"parameter 'model'.*choose one") as refusal:
        read(model=given, tools=[tool("search", runtime_parameters={"api_key": SECRET})])

    assert SECRET not in str(refusal.value)
    assert refusal.value.__cause__ is refusal.value.__context__ is None


class WithLanguage(StrategyParams):
    answer_language: Text = ""


def test_the_nodes_secrets_are_replaced_in_every_text_parameter_but_the_state() -> None:
    texts = {"query", "approval", "answer_criteria", "answer_language", "state"}
    params = WithLanguage.model_validate({"model": model(), **dict.fromkeys(texts, f"in {SECRET}")})

    redacted = params.redacted(Redactor.of([SECRET]))

    assert {getattr(redacted, name) for name in texts - {"state"}} == {"in [redacted]"}
    assert redacted.state == f"in {SECRET}"


LIMIT = parameter("max_token", "number", form="form")
IS_SECRET: dict[str, tuple[dict[str, Any], bool]] = {
    "by type": (tool("a", parameter("pin", "secret-input", form="form"), runtime_parameters={"pin": SECRET}), True),
    "of the model's form": (tool("a", parameter("pin", "secret-input"), runtime_parameters={"pin": SECRET}), True),
    "by name": (tool("a", parameter("token", form="form"), runtime_parameters={"token": SECRET}), True),
    "undeclared": (tool("a", runtime_parameters={"api_key": SECRET}), True),
    "below a name": (tool("a", runtime_parameters={"credentials": {"user": [SECRET]}}), True),
    "a number": (tool("a", runtime_parameters={"password": 12345678}), True),
    "a limit": (tool("a", LIMIT, runtime_parameters={"max_token": 12345678}), False),
    "an option": (tool("a", parameter("token", "select", form="form"), runtime_parameters={"token": SECRET}), False),
    "a default": (tool("a", parameter("token", default=SECRET)), False),
    "too short": (tool("a", runtime_parameters={"token": SECRET[:5]}), False),
    "odd": ({"runtime_parameters": [SECRET], "parameters": [SECRET]}, False),
    "nothing": ({}, False),
}


@pytest.mark.parametrize(("raw", "is_secret"), IS_SECRET.values(), ids=IS_SECRET)
def test_a_value_of_any_tool_is_secret_by_its_parameters_type_or_name(raw: dict[str, Any], *, is_secret: bool) -> None:
    text = f"<{SECRET}> 12345678"

    assert (node_secrets([tool("b"), raw]).text(text) != text) is is_secret


def select(raw: object) -> tuple[ModelSelection, list[str]]:
    notes: list[str] = []
    return ModelSelection.read(raw, notes.append), notes


@pytest.mark.parametrize(
    ("stop", "words"), [("x", ("x",)), (["x", "", None, 3, "y"], ("x", "y")), ([], ()), (None, ()), ({"x": 1}, ())]
)
def test_stop_words_are_a_word_or_a_list(stop: object, words: tuple[str, ...]) -> None:
    assert select(model(completion_params={"stop": stop}))[0].stop == words


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, 0), (100, 100), ("100", 100), (0, 0), (-3, 0), ("many", 0), (float("inf"), 0), ([1], 0), (10**400, 10**12)],
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
