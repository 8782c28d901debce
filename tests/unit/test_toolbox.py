"""The node's tools as the model sees them and finds them, whatever Dify or an MCP server declares."""

import json
import re
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import meta

from internal.calls.judging import ArgumentsInvalid, validate_arguments
from internal.node.tool_search import MAX_FOUND, ToolSearch, nearest
from internal.node.tools import Toolbox, build_toolbox, name_files, name_in_history
from internal.node.virtual_tools import answer_tool
from tests.support.builders import file, parameter_of, tool_of
from tests.support.generators import text_from_the_host
from tests.support.wire import parameter, tool

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")


def own_names(toolbox: Toolbox) -> list[str]:
    return [tool.own_name for tool in toolbox.tools.values()]


# Tools.


@given(
    st.lists(
        text_from_the_host
        | st.sampled_from(["search", "sear ch", "sear_ch", "x" * 80, "検索", "-", "1x", "_1x", "1" * 64]),
        max_size=8,
    )
)
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
    assert {len(name) for name in build_toolbox([tool("x" * 90) for _ in range(12)]).tools} == {64}


def test_a_name_that_begins_with_a_digit_or_a_hyphen_gets_an_underscore_in_front() -> None:
    """Gemini refuses every request that offers such a tool."""
    raw = [tool(name) for name in ("1start", "-2", "tool_1start", "9" * 80)]

    toolbox = build_toolbox(raw)

    assert list(toolbox.tools) == ["tool_1start", "tool_-2", "tools_tool_1start", "tool_" + "9" * 59]
    assert own_names(toolbox) == ["1start", "-2", "tool_1start", "9" * 80]
    invented = [name_in_history(name) for name in ("2nd", "-", "", "ok", "検")]
    assert invented == [
        "tool_2nd",
        "tool_-",
        "unnamed",
        "ok",
        "tool__",
    ]
    assert build_toolbox([tool("1start")], allowed=["1start"]).notes == ()


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


def test_entries_that_mean_no_tool_are_named_and_of_many_the_first() -> None:
    """Each entry that means no tool is a line in the log."""
    allowed = [*("nope" for _ in range(50)), *(f"no{number}" for number in range(50))]

    notes = build_toolbox([tool("search")], allowed=[*allowed, "search"]).notes

    assert len(notes) == 21
    assert notes[0] == "allowed_tools: no tool has the name 'nope'"
    assert notes[-1] == "allowed_tools: 31 more names match no tool"


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        (None, "search"),
        ({"llm": None, "human": None}, "search"),
        ({"llm": " ", "human": {"en_US": ""}}, "search"),
        ({"llm": "", "human": {"en_US": "shown"}}, "shown"),
        ({"llm": "for the model", "human": {"en_US": "shown"}}, "for the model"),
    ],
    ids=repr,
)
def test_descriptions_are_read_leniently(description: object, expected: str) -> None:
    assert tool_of(description=description).description == expected


@pytest.mark.parametrize("provider_type", ["builtin", "mcp"])
@pytest.mark.parametrize(
    ("name", "label", "expected"),
    [
        ("search", {"en_US": "Search the web"}, "Search the web"),
        ("search", {"en_US": " "}, "search"),
        ("search", None, "search"),
        (" ", None, "tool"),
    ],
)
def test_a_tool_without_a_description_is_described_by_its_label_or_its_name(
    provider_type: str, name: str, label: object, expected: str
) -> None:
    """Bedrock's client refuses a description without a character."""
    raw = tool(name, description={"human": None, "llm": ""}, provider_type=provider_type)
    raw["identity"]["label"] = label

    assert [each.description for each in build_toolbox([raw]).prompt_tools] == [expected]


@pytest.mark.parametrize("kind", ["model-selector", "hologram", "system-files"])
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


@pytest.mark.parametrize("form", ["form", "schema", "of a later Dify", "llm"])
def test_what_the_developer_set_is_hidden_from_the_model(form: str) -> None:
    """Even if the parameter's form is the model's; and a value of null sets nothing."""
    runtime = {"key": "s3cret-value", "q": None, "extra": 1}
    found = tool_of(parameter("key", form=form, required=True), parameter("q"), runtime_parameters=runtime)

    assert list(found.prompt_tool.parameters["properties"]) == ["q"]
    assert found.prompt_tool.parameters["required"] == []
    assert found.fixed == {"key": "s3cret-value", "extra": 1}
    assert "s3cret-value" not in repr(found)


def test_this_turns_files_have_distinct_readable_names() -> None:
    files = [file("a.png"), file("a.png"), file(None, extension=".pdf", kind="document"), file(None)]

    assert list(name_files(files)) == ["a.png", "2-a.png", "document-3.pdf", "image-4"]


@given(st.lists(st.sampled_from([None, "a.png", "2-a.png", "3-a.png", "3-2-a.png"]), max_size=6))
def test_no_file_is_lost_to_its_name(names: list[str | None]) -> None:
    assert len(name_files(map(file, names))) == len(names)


# Parameters.

JSON_TYPES = {"string", "number", "integer", "boolean", "array", "object", "null"}
STRINGS = ["string", "secret-input", "text-input", "select", "dynamic-select", "date"]
KINDS = [*STRINGS, "number", "boolean", "checkbox", "object", "array", "any", "date-range"]


def mcp(schema: dict[str, Any], kind: str = "object", name: str = "x", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return parameter(name, kind, input_schema=schema, **more)


def types_in(schema: object) -> set[str]:
    if isinstance(schema, dict):
        own = schema.get("type")
        return ({own} if isinstance(own, str) else set()).union(*(types_in(value) for value in schema.values()))
    if isinstance(schema, list):
        return set[str]().union(*map(types_in, schema))
    return set()


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_of_dify_becomes_json_schema(kind: str) -> None:
    found = tool_of(parameter("x", kind, options=[{"value": "a"}], min=1, max=5, llm_description="What it is."))

    meta.validate(found.prompt_tool.parameters)
    schema = found.prompt_tool.parameters["properties"]["x"]
    assert types_in(schema) <= JSON_TYPES
    assert schema["description"] == "What it is."


@pytest.mark.parametrize(
    ("kind", "more", "schema"),
    [
        ("select", {"options": [{"value": "a", "label": {}}]}, {"type": "string", "enum": ["a"]}),
        ("select", {"options": None}, {"type": "string"}),
        (
            "select",
            {"options": [{"value": "a"}], "multiple": True},
            {"type": "array", "items": {"type": "string", "enum": ["a"]}},
        ),
        ("number", {"min": 0, "max": 1.5}, {"type": "number", "minimum": 0, "maximum": 1.5}),
        ("number", {"min": None, "max": None}, {"type": "number"}),
    ],
)
def test_options_are_an_enum_and_bounds_are_numbers(kind: str, more: dict[str, Any], schema: dict[str, Any]) -> None:
    assert parameter_of(kind, **more).schema == schema


@pytest.mark.parametrize(
    ("more", "required"),
    [({}, []), ({"required": True}, ["x"]), ({"required": True, "default": "d"}, []), ({"required": None}, [])],
)
def test_with_a_default_there_is_nothing_to_ask_the_model_for(more: dict[str, Any], required: list[str]) -> None:
    assert tool_of(parameter("x", **more)).prompt_tool.parameters["required"] == required


def test_a_file_parameter_takes_the_names_of_this_turns_files() -> None:
    raw = tool("read", parameter("one", "file", required=True), parameter("all", "files"))

    schema = build_toolbox([raw], files={"a.png": file("a.png"), "b.pdf": file("b.pdf")}).prompt_tools[0].parameters

    names = {"type": "string", "enum": ["a.png", "b.pdf"]}
    assert schema["properties"] == {"one": names, "all": {"type": "array", "items": names}}
    assert schema["required"] == ["one"]


@pytest.mark.parametrize(("required", "tools"), [(False, ["read"]), (True, [])])
def test_without_files_a_file_parameter_is_left_out(required: bool, tools: list[str]) -> None:  # noqa: FBT001 - a table
    toolbox = build_toolbox([tool("read", parameter("one", "file", required=required))])

    assert list(toolbox.tools) == tools
    assert "this turn has none" in toolbox.notes[0]


@pytest.mark.parametrize(
    ("broken", "note"),
    [
        ({"type": "strnig"}, "not valid JSON Schema"),
        ({"type": "string", "pattern": 5}, "not valid JSON Schema"),
        ({"type": "string", "enum": 5}, "not valid JSON Schema"),
        ({"type": 5, "enum": ["a"]}, "not valid JSON Schema"),
        ({"type": [5], "enum": ["a"]}, "not valid JSON Schema"),
        ({"type": "array", "enum": {"a": 1}}, "not valid JSON Schema"),
        ({"$ref": "#/$defs/nowhere", "description": "A."}, "nothing is left of it"),
        ({"title": "A"}, "nothing is left of it"),
    ],
    ids=str,
)
def test_a_broken_schema_is_named_and_the_parameter_has_its_plain_type(broken: dict[str, Any], note: str) -> None:
    toolbox = build_toolbox([tool("search", mcp(broken, llm_description="What."), parameter("q"))])

    whole = toolbox.prompt_tools[0].parameters
    meta.validate(whole)
    assert whole["properties"]["x"] == {"type": "object", "description": "What."}
    assert validate_arguments(toolbox.tools["search"], {"x": '{"any": "thing"}'}) == {"x": {"any": "thing"}}
    (said,) = toolbox.notes
    assert "'x'" in said
    assert note in said


def test_a_lost_reference_or_pattern_is_named_and_what_is_next_to_it_still_applies() -> None:
    """Dify drops the definitions of MCP servers."""
    row = {"$ref": "#/$defs/Row", "type": "object", "required": ["id"], "properties": {"a": {"pattern": "["}}}
    raw = tool("search", mcp({"type": "array", "items": row, "default": {"$ref": "#/no"}}, "array"))

    toolbox = build_toolbox([raw])

    told = {"type": "object", "required": ["id"], "properties": {"a": {}}}
    assert toolbox.prompt_tools[0].parameters["properties"]["x"] == {
        "type": "array",
        "items": told,
        "default": {"$ref": "#/no"},
    }
    assert validate_arguments(toolbox.tools["search"], {"x": [{"id": 1, "a": "?"}]}) == {"x": [{"id": 1, "a": "?"}]}
    with pytest.raises(ArgumentsInvalid, match='"id" is a required property'):
        validate_arguments(toolbox.tools["search"], {"x": [{}]})
    assert [note.partition("nothing is checked there: ")[2] for note in toolbox.notes] == [
        "the pattern '[' is not a regular expression, or too large",
        "'#/$defs/Row' is not sent by Dify",
    ]


TEXTS: dict[str, Any] = {"type": "array", "enum": ["a", "b"], "items": {"type": "string"}}
NEVER = "its options are not checked: no value of the type {!r} is one of them"


@pytest.mark.parametrize(
    ("own", "given", "wrong", "kind"),
    [
        (TEXTS, ["a"], "x", "array"),
        ({"properties": {"deep": {"items": TEXTS}}}, {"deep": [["a"]]}, {"deep": ["x"]}, "array"),
        ({"anyOf": [TEXTS, {"type": "null"}]}, ["a", "c"], 7, "array"),
        ({"type": "integer", "enum": ["1", "2"]}, 1, "x", "integer"),
        ({**TEXTS, "type": ["array", "null"]}, ["a"], "x", ["array", "null"]),
    ],
    ids=str,
)
def test_options_that_no_value_of_the_type_can_be_are_named_and_not_checked(
    own: dict[str, Any], given: object, wrong: object, kind: object
) -> None:
    """Public data on function calling has them; the rest of the schema still applies."""
    toolbox = build_toolbox([tool("search", mcp(own, "any"))])

    found = toolbox.tools["search"]
    assert validate_arguments(found, {"x": given}) == {"x": given}
    with pytest.raises(ArgumentsInvalid):
        validate_arguments(found, {"x": wrong})
    assert toolbox.notes == (f"tool 'search': parameter 'x': {NEVER.format(kind)}",)
    told = json.dumps(found.prompt_tool.parameters)
    assert '"enum"' not in told
    assert "Allowed values" in told


@pytest.mark.parametrize(
    "own",
    [
        {"type": ["array", "string"], "enum": ["a", "b"]},
        {"type": "array", "enum": [["a"], "b"]},
        {"type": "number", "enum": [1, "b"]},
        {"enum": ["a"]},
    ],
    ids=str,
)
def test_options_that_a_value_can_be_are_checked(own: dict[str, Any]) -> None:
    toolbox = build_toolbox([tool("search", mcp(own, "any"))])

    assert toolbox.notes == ()
    with pytest.raises(ArgumentsInvalid, match="not in options"):
        validate_arguments(toolbox.tools["search"], {"x": "x" if "string" in str(own) else [7]})


def test_a_remote_reference_is_never_fetched() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)  # noqa: FBT003 - the name of the standard library
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        for schema in ({"$ref": address}, {"$dynamicRef": address}, {"$schema": address, "type": "object"}):
            validate_arguments(tool_of(mcp(schema)), {"x": {"a": 1}})

        with pytest.raises(BlockingIOError):
            listener.accept()


# Schemas as the model is told them.

LIST = {"type": "array"}
ANYTHING = {"type": "array", "items": {}}


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (LIST, ANYTHING),
        ({"type": ["array", "null"]}, {"type": ["array", "null"], "items": {}}),
        ({**LIST, "items": LIST}, {**LIST, "items": ANYTHING}),
        ({"properties": {"a": LIST, "items": LIST}}, {"properties": {"a": ANYTHING, "items": ANYTHING}}),
        ({"anyOf": [LIST, {"type": "null"}]}, {"anyOf": [ANYTHING, {"type": "null"}]}),
        (
            {**LIST, "items": {"type": "string"}, "default": LIST},
            {**LIST, "items": {"type": "string"}, "default": LIST},
        ),
        ({"additionalProperties": LIST}, {"additionalProperties": ANYTHING}),
    ],
    ids=str,
)
def test_an_array_says_what_its_items_are(own: dict[str, Any], told: dict[str, Any]) -> None:
    """OpenAI and Gemini refuse every request with an array that does not."""
    found = tool_of(mcp(own, "any"))

    assert found.prompt_tool.parameters["properties"]["x"] == told
    assert found.parameters["x"].check.schema == own
    answer = answer_tool(json.dumps({"type": "object", "properties": {"x": own}}))
    assert answer.prompt_tool.parameters["properties"]["x"] == told


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (
            {"type": "integer", "enum": [1, 2], "description": "How many."},
            {"type": "integer", "description": "How many.\nAllowed values: 1, 2"},
        ),
        (
            {"enum": ["é", None, True, 0.5, [1], {"a": 1}]},
            {"description": 'Allowed values: "é", null, true, 0.5, [1], {"a": 1}'},
        ),
        (
            {"type": "array", "items": {"enum": [1]}},
            {"type": "array", "items": {"description": "Allowed values: 1"}},
        ),
        ({"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["a"]}),
        ({"type": ["string", "null"], "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a"]}),
        ({"enum": ["a"]}, {"enum": ["a"]}),
        ({"properties": {"enum": {"enum": [1]}}}, {"properties": {"enum": {"description": "Allowed values: 1"}}}),
    ],
    ids=str,
)
def test_an_enum_has_texts_alone_and_other_values_are_in_the_description(
    own: dict[str, Any], told: dict[str, Any]
) -> None:
    """Gemini and the plugins ``gemini`` and ``tongyi`` take no other enum."""
    found = tool_of(mcp(own, "any"))

    assert found.prompt_tool.parameters["properties"]["x"] == told
    assert found.parameters["x"].check.schema == own
    answer = answer_tool(json.dumps({"type": "object", "properties": {"x": own}}))
    assert answer.prompt_tool.parameters["properties"]["x"] == told


def test_the_description_of_a_parameter_stands_before_its_values() -> None:
    found = tool_of(mcp({"type": "integer", "enum": [1]}, llm_description="How many."))

    told = found.prompt_tool.parameters["properties"]["x"]
    assert told == {"type": "integer", "description": "How many.\nAllowed values: 1"}


DESCRIBED = {
    "list_orders": "Lists the orders of a customer.",
    "create_invoice": "Creates an invoice. An order may have several.",
    "issues.getComment": "Reads a comment.",
    "slack-post-message": "Sends a text to a channel.",
    "chumon": "注文の一覧を取得します。",
    "fapiao": "为客户开具发票。",
    "jumun": "주문을 취소합니다.",
    "pedidos": "Cancela a encomenda de um cliente e devolve o preço.",
    "akas": "ตรวจสอบสภาพอากาศของเมือง",
    "mausam": "शहर का मौसम बताता है।",
    "schet": "Выставляет счета клиентам.",
    "long": "order " + "and much else that nobody asked for " * 40,
}
PARAMETERS = {"slack-post-message": [parameter("recipientEmail")]}
SEARCH = ToolSearch(
    build_toolbox(
        tool(name, *PARAMETERS.get(name, ()), description={"human": {}, "llm": text})
        for name, text in DESCRIBED.items()
    )
)


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("order", "list_orders"),
        ("invoices", "create_invoice"),
        ("getComment", "issues_getComment"),
        ("message to a channel", "slack-post-message"),
        ("注文を探す", "chumon"),
        ("发票", "fapiao"),
        ("ＩＮＶＯＩＣＥ", "create_invoice"),
        ("주문 취소", "jumun"),
        ("preços", "pedidos"),
        ("สภาพอากาศ", "akas"),
        ("счёт счета", "schet"),
    ],
)
def test_the_best_match_comes_first(query: str, best: str) -> None:
    assert SEARCH.best(query)[0].name == best


def test_matches_are_ranked_and_others_are_left_out() -> None:
    assert [found.name for found in SEARCH.best("order")] == ["list_orders", "create_invoice", "long"]
    assert SEARCH.best("") == SEARCH.best("…") == SEARCH.best("xylophone") == []
    assert ToolSearch(build_toolbox([])).best("order") == []


def test_equal_matches_come_in_the_order_of_the_panel() -> None:
    tools = [tool(f"same_{number}", description={"human": {}, "llm": "Same."}) for number in range(20)]

    found = ToolSearch(build_toolbox(tools)).best("same")

    assert [each.name for each in found] == [f"same_{number}" for number in range(MAX_FOUND)]


def test_the_nearest_names_share_most_letters() -> None:
    names = [*DESCRIBED, *(f"x{number}" for number in range(9))]

    assert nearest("List_Order", names)[0] == "list_orders"
    assert nearest("createinvoice", names)[0] == "create_invoice"
    assert len(nearest("nothing", names)) == MAX_FOUND
    assert nearest("", []) == []
