"""The node's tools as the model sees them, and the way back from a name to a call."""

import re

import pytest
from dify_plugin.entities.tool import ToolProviderType
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import meta

from internal.node.tools import Toolbox, build_toolbox, name_files
from tests.support.wire import parameter, tool
from tests.unit.builders import file, tool_of
from tests.unit.generators import text_from_the_host

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
SECRET = "s3cret-value"


def own_names(toolbox: Toolbox) -> list[str]:
    return [tool.own_name for tool in toolbox.tools.values()]


def test_a_tool_keeps_what_a_call_of_it_needs() -> None:
    raw = tool("search", parameter("q"), credential_id="cred-1", provider_type="mcp", provider="server-1")

    found = build_toolbox([raw]).tools["search"]

    assert (found.own_name, found.provider, found.credential_id) == ("search", "server-1", "cred-1")
    assert found.provider_type is ToolProviderType.MCP
    assert found.description == "What search does."


NAMES = ["search", "sear ch", "sear_ch", "x" * 80, "検索", "-", "_"]


@given(st.lists(text_from_the_host | st.sampled_from(NAMES), max_size=8))
def test_every_name_is_one_that_model_apis_take_and_no_other_tool_has(names: list[str]) -> None:
    toolbox = build_toolbox([tool(name) for name in names])

    assert own_names(toolbox) == names
    assert all(NAME.fullmatch(name) for name in toolbox.tools)
    assert all(name == found.name == found.prompt_tool.name for name, found in toolbox.tools.items())
    assert toolbox.notes == ()


def test_namesakes_are_told_apart_by_their_provider_and_mapped_back() -> None:
    toolbox = build_toolbox([tool("search", provider=f"acme/{name}/{name}") for name in ("a", "b", "b", "b")])

    assert list(toolbox.tools) == ["search", "b_search", "search_2", "search_3"]
    assert own_names(toolbox) == ["search"] * 4
    assert [found.provider for found in toolbox.tools.values()] == ["acme/a/a", *["acme/b/b"] * 3]


def test_long_namesakes_stay_within_the_length() -> None:
    toolbox = build_toolbox([tool("x" * 90) for _ in range(12)])

    assert len(toolbox.tools) == 12
    assert {len(name) for name in toolbox.tools} == {64}


def test_names_of_virtual_tools_are_reserved() -> None:
    toolbox = build_toolbox([tool("plan"), tool("search")], reserved=frozenset({"plan"}))

    assert "plan" not in toolbox.tools
    assert own_names(toolbox) == ["plan", "search"]


@pytest.mark.parametrize(
    ("allowed", "offered"),
    [
        ((), ["search", "search", "fetch"]),
        (("search",), ["search", "search"]),
        (("b/search", "fetch"), ["search", "fetch"]),
        (("acme/a/a/search",), ["search"]),
        (("a/a/search", "other"), ["search"]),
        (("earch", "c/search", "SEARCH"), []),
    ],
)
def test_the_allow_list_takes_names_and_provider_and_name(allowed: tuple[str, ...], offered: list[str]) -> None:
    raw = [tool("search", provider="acme/a/a"), tool("search", provider="acme/b/b"), tool("fetch", provider="acme/a/a")]

    toolbox = build_toolbox(raw, allowed=allowed)

    assert own_names(toolbox) == offered
    assert len([note for note in toolbox.notes if "not among the allowed" in note]) == 3 - len(offered)


def test_an_allowed_name_that_no_tool_has_is_named() -> None:
    (note,) = build_toolbox([tool("search")], allowed=["search", "serach"]).notes

    assert "'serach'" in note


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        (None, ""),
        ({"llm": None, "human": None}, ""),
        ({"llm": "", "human": {"en_US": "shown"}}, "shown"),
        ({"llm": "for the model", "human": {"en_US": "shown"}}, "for the model"),
    ],
    ids=repr,
)
def test_descriptions_are_read_leniently(description: object, expected: str) -> None:
    assert tool_of(description=description).description == expected


@pytest.mark.parametrize("runtime", [None, {}, {"q": None}], ids=repr)
def test_runtime_parameters_that_are_null_fix_nothing(runtime: object) -> None:
    found = tool_of(parameter("q"), runtime_parameters=runtime)

    assert found.fixed == {}
    assert list(found.parameters) == ["q"]


@pytest.mark.parametrize("provider_type", [None, "", "plugin"], ids=repr)
def test_an_unknown_provider_type_is_the_plain_one(provider_type: object) -> None:
    assert tool_of(provider_type=provider_type).provider_type is ToolProviderType.BUILT_IN


@pytest.mark.parametrize("kind", ["model-selector", "app-selector", "hologram", "system-files"])
def test_a_bad_parameter_is_left_out_and_a_bad_required_one_removes_the_tool(kind: str) -> None:
    toolbox = build_toolbox(
        [
            tool("search", parameter("q"), parameter("odd", kind)),
            tool("fetch", parameter("q"), parameter("odd", kind, required=True)),
            tool("clock", parameter("q")),
        ]
    )

    assert list(toolbox.tools) == ["search", "clock"]
    assert list(toolbox.tools["search"].parameters) == ["q"]
    assert [note for note in toolbox.notes if "'search'" in note and "'odd'" in note]
    assert [note for note in toolbox.notes if "'fetch' is left out" in note and "'odd'" in note]


@pytest.mark.parametrize("form", ["form", "schema", "of a later Dify"])
def test_parameters_of_the_developer_are_hidden_from_the_model(form: str) -> None:
    found = tool_of(parameter("key", form=form, required=True), parameter("q"), runtime_parameters={"key": "k"})

    assert list(found.prompt_tool.parameters["properties"]) == ["q"]
    assert found.fixed == {"key": "k"}


def test_a_value_that_the_developer_set_is_hidden_even_if_its_form_is_the_models() -> None:
    found = tool_of(parameter("q", required=True), runtime_parameters={"q": "set", "extra": 1})

    assert found.prompt_tool.parameters == {"type": "object", "properties": {}, "required": []}
    assert found.fixed == {"q": "set", "extra": 1}


def test_values_that_the_developer_set_are_never_shown() -> None:
    found = tool_of(parameter("pin", "secret-input", form="form"), runtime_parameters={"pin": SECRET})

    assert SECRET not in repr(found)


def test_the_tools_of_a_request_are_in_the_nodes_order_and_the_same_every_time() -> None:
    toolbox = build_toolbox([tool("b", parameter("z"), parameter("a")), tool("a")])

    assert [offered.name for offered in toolbox.prompt_tools] == ["b", "a"]
    assert list(toolbox.prompt_tools[0].parameters["properties"]) == ["z", "a"]
    assert toolbox.prompt_tools is toolbox.prompt_tools
    for offered in toolbox.prompt_tools:
        meta.validate(offered.parameters)


def test_this_turns_files_have_distinct_readable_names() -> None:
    files = [file("a.png"), file("a.png"), file(None, extension=".pdf", kind="document"), file(None)]

    assert list(name_files(files)) == ["a.png", "2-a.png", "document-3.pdf", "image-4"]


@given(st.lists(st.sampled_from([None, "a.png", "2-a.png", "3-a.png", "3-2-a.png"]), max_size=6))
def test_no_file_is_lost_to_its_name(names: list[str | None]) -> None:
    assert len(name_files(map(file, names))) == len(names)


def test_endless_allow_lists_are_named_by_their_beginning() -> None:
    """Each entry that means no tool is a line in the log."""
    allowed = [*("nope" for _ in range(50)), *(f"no{number}" for number in range(50))]

    notes = build_toolbox([tool("search")], allowed=[*allowed, "search"]).notes

    assert len(notes) == 21
    assert notes[0] == "allowed_tools: no tool is called 'nope'"
    assert notes[-1] == "allowed_tools: 31 more names match no tool"
