"""StrategyParams in every shape in which Dify sends the node's parameters."""

import re
from typing import Any

import hypothesis
import pytest
from dify_plugin.file.entities import FileType
from dify_plugin.file.file import File
from hypothesis import strategies as st
from pydantic import BaseModel

from internal.errors import InvalidParameters
from internal.node.params import ExtraOutput, StrategyParams, Text, node_secrets, read_params
from internal.text.secrets import Redactor
from tests.support.wire import model, parameter, tool
from tests.unit.generators import any_text, json_values

SECRET = "hunter2-hunter2"
FILE = {
    "dify_model_identity": "__dify__file__",
    "url": "http://host.test/a.png",
    "mime_type": "image/png",
    "filename": "a.png",
    "extension": ".png",
    "size": 10,
    "type": "image",
}
LEFT_ALONE: tuple[object, ...] = (None, "", [], [None], {})


def read(**given: Any) -> StrategyParams:  # noqa: ANN401 - whatever a host may send
    return read_params({"model": model(), "query": "Why?", **given}, StrategyParams)


def secret_tool() -> dict[str, Any]:
    return tool("search", runtime_parameters={"api_key": SECRET})


def test_what_the_user_left_alone_and_what_a_saved_node_lacks_is_the_default_without_a_note() -> None:
    """tests/test_declarations.py compares the defaults with those of the YAML."""
    lacking = read()

    assert lacking.notes == ()
    assert (lacking.maximum_iterations, lacking.tools, lacking.instruction, lacking.context) == (6, (), "", None)
    for value in LEFT_ALONE:
        assert read(**dict.fromkeys(set(StrategyParams.model_fields) - {"model", "query"}, value)) == lacking


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("maximum_iterations", "3", 3),
        ("maximum_iterations", 3.0, 3),
        ("tool_result_limit", "1e3", 1000),
        ("tool_result_limit", " 5000 ", 5000),
        ("maximum_seconds", "45.5", 45),
        ("parallel_tool_calls", 16, 16),
        ("maximum_total_tokens", 0, 0),
        ("maximum_total_tokens", 3.9, 3),
        ("maximum_total_tokens", 0.4, 1),
        ("maximum_total_tokens", 10**18, 10**18),
    ],
)
def test_numbers_are_read_from_texts_too(name: str, given: object, expected: int) -> None:
    params = read(**{name: given})

    assert getattr(params, name) == expected
    assert type(getattr(params, name)) is int
    assert params.notes == ()


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("maximum_iterations", 0, 1),
        ("maximum_iterations", "1000", 100),
        ("parallel_tool_calls", 99, 16),
        ("tool_result_limit", -1, 1_000),
        ("maximum_seconds", "inf", 3_600),
        ("maximum_seconds", float("-inf"), 30),
        *(("maximum_total_tokens", given, "0, which is no limit,") for given in (-1, "-0.5", float("-inf"))),
    ],
)
def test_a_limit_out_of_range_is_clamped_and_noted(name: str, given: object, expected: object) -> None:
    params = read(**{name: given})

    (note,) = params.notes
    assert note.startswith(f"{name}: ")
    assert note.endswith(f"; {expected} is used")
    assert getattr(params, name) == (0 if isinstance(expected, str) else expected)


@pytest.mark.parametrize(
    "given", [True, "abc", float("nan"), "NaN", {"a": 1}, [3], 10**400], ids=lambda each: repr(each)[:9]
)
def test_a_value_that_is_not_a_number_is_the_default_and_noted(given: object) -> None:
    params = read(maximum_iterations=given, maximum_tool_calls=given)

    assert (params.maximum_iterations, params.maximum_tool_calls) == (6, 0)
    assert params.notes == (
        "maximum_iterations: not a number; 6 is used",
        "maximum_tool_calls: not a number; 0, which is no limit, is used",
    )


@pytest.mark.parametrize("given", ["inf", "1" + 400 * "0"], ids=["inf", "beyond any float"])
def test_a_limit_without_a_maximum_is_not_infinite(given: str) -> None:
    assert read(maximum_tool_calls=given).maximum_tool_calls == 0
    assert len(read(maximum_tool_calls=given).notes) == 1


@pytest.mark.parametrize(
    ("given", "expected", "notes"),
    [
        (True, True, 0),
        (False, False, 0),
        (1, True, 0),
        (0, False, 0),
        ("true", True, 0),
        (" Yes ", True, 0),
        ("off", False, 0),
        ("maybe", False, 1),
        ({"a": 1}, False, 1),
    ],
)
def test_switches_are_read_from_words_too(given: object, expected: bool, notes: int) -> None:  # noqa: FBT001 - a table
    params = read(emit_intermediate_thoughts=given)

    assert params.emit_intermediate_thoughts is expected
    assert len(params.notes) == notes
    assert read(show_sources=given).show_sources is (expected or notes > 0)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("search", ("search",)),
        ("search, acme/clock\n  fetch ,,\n", ("search", "acme/clock", "fetch")),
        (["search", "a,b", None, ""], ("search", "a", "b")),
        ("search，fetch、acme/clock", ("search", "fetch", "acme/clock")),
        (7, ("7",)),
    ],
)
@pytest.mark.parametrize("name", ["allowed_tools", "approval_required"])
def test_names_of_tools_come_by_comma_line_or_list(name: str, given: object, expected: tuple[str, ...]) -> None:
    assert getattr(read(**{name: given}), name) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [({"pay": True}, ('{"pay": true}',)), (0, ("0",)), (" \n , ", (",",)), ("[]", ("[]",)), (" \n", ())],
    ids=repr,
)
def test_an_odd_list_of_tools_that_need_approval_is_kept_so_that_no_tool_can_match_it(
    given: object, expected: tuple[str, ...]
) -> None:
    """Read as nothing, it would let every tool run."""
    assert read(approval_required=given).approval_required == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("state", {"state"}),
        ("state, tool_results\nthoughts", {"state", "tool_results", "thoughts"}),
        (" State ,STATE,, ", {"state"}),
        (["thoughts", None, "state"], {"thoughts", "state"}),
        ("['state', 'thoughts']", {"state", "thoughts"}),
        ('["tool_results"]', {"tool_results"}),
        (" \n , ", set()),
    ],
    ids=repr,
)
def test_extra_outputs_come_by_comma_line_or_list(given: object, expected: set[str]) -> None:
    params = read(extra_outputs=given)

    assert params.extra_outputs == {ExtraOutput(name) for name in expected}
    assert params.notes == ()


def test_unknown_names_of_extra_outputs_are_ignored_and_noted() -> None:
    params = read(extra_outputs="state, usage, Usages")

    assert params.extra_outputs == {ExtraOutput.STATE}
    assert params.notes == ("extra_outputs: 'usage', 'Usages' is ignored; the names are state, tool_results, thoughts",)


@pytest.mark.parametrize("name", ["answer_criteria", "approval", "extra_outputs"])
def test_a_variable_that_does_not_exist_is_noted(name: str) -> None:
    params = read(**{name: " start.gone "})

    (note,) = params.notes
    assert note.startswith(f"{name}: ")
    assert "'start.gone' looks like a variable that does not exist" in note
    if name == "answer_criteria":
        assert params.answer_criteria == " start.gone ", "a person may have typed it"
    assert params.approval == "", "the user said nothing"


@pytest.mark.parametrize("approval", ["example.com", " example.com\n"])
def test_an_approval_that_is_the_query_is_no_variable(approval: str) -> None:
    params = read(query="example.com", approval=approval)

    assert (params.approval, params.notes) == (approval, ())


@pytest.mark.parametrize("given", ["null", "[]", f"1.{SECRET}==", "start.state", ' {"a": 1} '])
def test_a_state_is_kept_as_it_came(given: str) -> None:
    params = read(state=given)

    assert params.state == given
    assert params.notes == ()
    assert params.redacted(Redactor.of([SECRET])).state == given


odd_values = (
    json_values
    | any_text
    | st.floats()
    | st.sampled_from(["1" + 400 * "0", "-inf", "[None]", "['*']", '{"a": 1}', "start.x"])
)


@hypothesis.given(
    st.dictionaries(st.sampled_from(sorted(set(StrategyParams.model_fields) - {"model", "query"})), odd_values)
)
def test_no_value_of_a_parameter_makes_a_run_impossible(given: dict[str, Any]) -> None:
    params = read(**given)

    assert min(params.maximum_total_tokens, params.maximum_tool_calls) >= 0
    assert all(isinstance(text, str) for text in (params.approval, params.state, params.fallback_model))
    assert all(name.strip() == name != "" for name in (*params.allowed_tools, *params.approval_required))
    assert params.extra_outputs <= set(ExtraOutput)


@pytest.mark.parametrize(
    ("given", "expected"),
    [(5, "5"), ("x\ud83dy", "x?y"), (["a"], '["a"]'), ({"t": "\ud83d日"}, '{"t": "?日"}')],
    ids=["number", "lone surrogate", "a list that Dify parsed", "object with a lone surrogate"],
)
def test_texts_are_texts_that_can_be_written(given: object, expected: str) -> None:
    assert read(query=given).query == expected


def test_tools_come_as_dicts_or_entities_and_an_unreadable_one_is_left_out() -> None:
    class Entity(BaseModel):
        identity: dict[str, str]
        parameters: list[dict[str, Any]]

    entity = Entity(identity={"name": "search"}, parameters=[parameter("q")])

    params = read(tools=[entity, "odd", None, tool("second"), 7])

    assert params.tools == (entity.model_dump(mode="json"), tool("second"))
    assert [re.findall(r"item \d", note) for note in params.notes] == [["item 2"], ["item 5"]]


@pytest.mark.parametrize("given", [[FILE], [File.model_validate(FILE)], FILE, [{"url": "x"}, None, FILE, "odd"]])
def test_files_come_as_dicts_or_as_the_sdks_files_and_an_unreadable_one_is_left_out(given: object) -> None:
    params = read(files=given)

    assert [(file.type, file.filename) for file in params.files] == [(FileType.IMAGE, "a.png")]
    assert len(params.notes) == (2 if isinstance(given, list) and "odd" in given else 0)


@pytest.mark.parametrize(
    "given",
    [None, "", {}, [], "gpt", {"provider": "p"}, {"model": "m"}, {"provider": "", "model": "m"}],
    ids=repr,
)
def test_a_run_without_a_model_is_refused_in_one_sentence(given: object) -> None:
    with pytest.raises(InvalidParameters, match=r"parameter 'model'.*choose one") as refusal:
        read(model=given, tools=[secret_tool()])

    assert SECRET not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__


class WithLanguage(StrategyParams):
    answer_language: Text = ""


def test_the_nodes_secrets_are_replaced_in_every_text_parameter() -> None:
    given = {"model": model(), "query": f"Is it {SECRET}?", "answer_language": f"in {SECRET}"}
    given |= {"approval": f"no, {SECRET}", "answer_criteria": f"without {SECRET}"}

    params = read_params(given, WithLanguage).redacted(Redactor.of([SECRET]))

    assert params.query == "Is it [redacted]?"
    assert (params.approval, params.answer_criteria) == ("no, [redacted]", "without [redacted]")
    assert params.answer_language == "in [redacted]"


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


def test_a_number_is_a_secret_by_its_name_unless_it_is_declared_as_a_number() -> None:
    limit = parameter("max_token", "number", form="form")

    assert hides(tool("a", runtime_parameters={"password": 12345678}), "12345678")
    assert not hides(tool("a", limit, runtime_parameters={"max_token": 100_000}), "100000")


def test_all_tools_count_and_only_their_texts_of_six_characters_and_more() -> None:
    redactor = node_secrets(
        [tool("a", runtime_parameters={"token": "short"}), tool("b", runtime_parameters={"token": SECRET})]
    )

    assert redactor.text(f"short {SECRET}") == "short [redacted]"
