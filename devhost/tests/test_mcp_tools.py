"""The tools of an MCP server: how they are described, and what becomes of their results."""

from collections.abc import Iterator
from pathlib import Path

import mcp_types
import pytest

from devhost import HostLimits
from devhost.errors import SetupError
from devhost.files import FileServer
from devhost.node.messages import FileMessages, ToolFileStore
from devhost.protocol.wire import JsonObject
from devhost.tools.mcp import declared_tool, dropped_of
from devhost.tools.tool import Tool, call_tool
from support.mcp_servers import everything, no_calls


@pytest.fixture(scope="module")
def tools() -> Iterator[dict[str, Tool]]:
    with everything(secrets={"SERVER_KEY": "sk-42-secret"}) as (tools, _):
        yield tools


@pytest.fixture
def call(tools: dict[str, Tool], tmp_path: Path) -> Iterator["Call"]:
    store = ToolFileStore(tmp_path)
    with FileServer(store):
        yield Call(tools, FileMessages(store, HostLimits(), lambda *_: None))


class Call:
    def __init__(self, tools: dict[str, Tool], files: FileMessages) -> None:
        self._tools = tools
        self._files = files

    def __call__(self, name: str, **parameters: object) -> list[tuple[str, JsonObject]]:
        """The type and the body of each message."""
        messages = call_tool(self._tools[name], parameters, self._files, no_calls)
        return [(message["type"], message["message"]) for message in messages]


def parameter(tool: Tool, name: str) -> JsonObject:
    (found,) = [each for each in tool.entity["parameters"] if each["name"] == name]
    assert isinstance(found, dict)
    return found


def test_a_tool_is_offered_as_dify_describes_it(tools: dict[str, Tool]) -> None:
    entity = tools["repeat"].entity

    assert entity["provider_type"] == "mcp"
    assert (entity["identity"]["provider"], entity["credential_id"]) == ("everything", "everything")
    assert entity["description"]["llm"] == "Repeats a text."
    assert [(each["name"], each["type"], each["required"]) for each in entity["parameters"]] == [
        ("text", "string", True),
        ("times", "number", False),
        ("unit", "string", False),
    ]
    assert {each["form"] for each in entity["parameters"]} == {"llm"}
    assert parameter(tools["repeat"], "unit")["input_schema"] is None
    assert "anyOf" in parameter(tools["sort_all"], "items")["input_schema"]
    assert tools["weather"].entity["output_schema"]["properties"].keys() == {"degrees", "sky"}


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("plain", [("text", {"text": "plain"})]),
        ('{"a": 1}', [("json", {"json_object": {"a": 1}})]),
        ('[{"a": 1}, {"b": 2}]', [("json", {"json_object": {"a": 1}}), ("json", {"json_object": {"b": 2}})]),
        ("{broken}", [("text", {"text": "{broken}"})]),
    ],
)
def test_a_text_that_is_json_becomes_json(call: Call, text: str, messages: list[tuple[str, JsonObject]]) -> None:
    assert call("say", texts=[text]) == messages


def test_pictures_and_resources_become_files_and_texts_and_a_link_is_not_handed_on(call: Call) -> None:
    kinds = [kind for kind, _ in call("show")]

    assert kinds == ["image_link", "binary_link", "text", "binary_link"]


def test_structured_content_becomes_variables_beside_its_text(call: Call) -> None:
    (kind, said), *variables = call("weather", city="Kobe")

    assert (kind, said["json_object"]) == ("json", {"degrees": 4, "sky": "clear"})
    assert [(body["variable_name"], body["variable_value"]) for _, body in variables] == [
        ("degrees", 4),
        ("sky", "clear"),
    ]


def test_values_are_cast_and_blank_ones_left_out_as_in_dify(call: Call) -> None:
    assert call("repeat", text="ha", times="2", unit=" ") == [("text", {"text": "ha\nha"})]


def test_an_error_that_a_server_reports_is_a_result_like_any_other(call: Call) -> None:
    assert call("complain", is_error=True) == [("text", {"text": "it failed"})]
    ((kind, said),) = call("complain", is_error=False)
    assert kind == "text"
    assert "sk-42-secret" not in said["text"]


def listed(schema: object) -> mcp_types.Tool:
    return mcp_types.Tool(name="t", input_schema={"type": "object", "properties": {"p": schema}})


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "integer"}, "number"),
        ({"type": ["null", "integer"]}, "number"),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, "boolean"),
        ({"anyOf": [{"type": "null"}, {"type": "boolean"}]}, "string"),
        ({"enum": ["a"]}, "string"),
    ],
)
def test_a_parameter_has_the_type_that_dify_finds(schema: JsonObject, kind: str) -> None:
    (parameter,) = declared_tool("s", listed(schema)).parameters
    assert parameter.type == kind


def test_a_type_that_dify_does_not_know_keeps_the_whole_server_out() -> None:
    with pytest.raises(SetupError, match=r"Dify does not take the MCP server s: parameter 'p' of t .* 'text'"):
        declared_tool("s", listed({"type": "text"}))


def test_what_dify_drops_of_a_result_is_told() -> None:
    link = mcp_types.ResourceLink(type="resource_link", name="notes", uri="https://notes.example/1")
    result = mcp_types.CallToolResult(content=[link], structured_content={"degrees": 4})

    assert list(dropped_of(result, has_schema=False)) == [
        "its structured content, because the tool declares no output schema",
        "its content of the type resource_link",
    ]
    assert list(dropped_of(result, has_schema=True)) == ["its content of the type resource_link"]
