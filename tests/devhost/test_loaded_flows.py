"""A graph as Dify's editor loads it, and as Dify hands it to the engine."""

import pytest

from devhost.flow.loaded import as_handed_on, as_loaded
from devhost.protocol.wire import JsonObject
from support.flow_documents import iteration, node


def loaded(*nodes: JsonObject) -> JsonObject:
    graph = as_loaded({"nodes": list(nodes), "edges": []})
    assert isinstance(graph, dict)
    return graph


def old_tool(**settings: object) -> JsonObject:
    """As exports of 2024 have it."""
    return node("tool", "search", provider_type="builtin", tool_configurations=settings, tool_parameters={})


def handed_on(settings: JsonObject, parameters: JsonObject | None = None) -> tuple[JsonObject, JsonObject]:
    given = node("tool", "t", tool_node_version="2", tool_configurations=settings, tool_parameters=parameters or {})
    (tool,) = as_handed_on({"nodes": [given], "edges": []})["nodes"]
    return tool["data"]["tool_configurations"], tool["data"]["tool_parameters"]


def test_a_setting_of_an_old_tool_node_becomes_a_constant() -> None:
    (tool,) = loaded(old_tool(limit=5, proxy=None, domains=["a"]))["nodes"]

    assert tool["data"]["tool_node_version"] == "2"
    assert tool["data"]["tool_configurations"] == {
        "limit": {"type": "constant", "value": 5},
        "proxy": {"type": "constant", "value": None},
        "domains": ["a"],
    }


@pytest.mark.parametrize("version", [{"version": "2"}, {"tool_node_version": "2"}])
def test_a_newer_tool_node_stays_as_it_is(version: JsonObject) -> None:
    given = old_tool(proxy=None)
    given["data"] |= version

    assert loaded(given)["nodes"] == [given]


def test_conditions_of_an_old_if_else_become_its_one_case() -> None:
    condition = {"variable_selector": ["sys", "query"], "comparison_operator": "is", "value": "a"}
    (branch,) = loaded(node("if-else", "if", logical_operator="and", conditions=[condition]))["nodes"]

    case = {"case_id": "true", "logical_operator": "and", "conditions": [condition]}
    assert branch["data"]["cases"] == [case]
    assert "conditions" not in branch["data"]


def test_an_http_request_without_a_word_on_retries_has_three() -> None:
    fetch, quiet = loaded(node("http-request", "a"), node("http-request", "b", retry_config={"max_retries": 0}))[
        "nodes"
    ]

    assert fetch["data"]["retry_config"] == {"retry_enabled": True, "max_retries": 3, "retry_interval": 100}
    assert quiet["data"]["retry_config"] == {"max_retries": 0}


def test_an_old_iteration_gets_a_start_before_its_first_node() -> None:
    container, _, first = iteration("each", [node("llm", "ask")], over="a.b", output="ask.text", start_node_id="ask")
    graph = loaded(container, first)

    start = graph["nodes"][-1]
    assert (start["id"], start["type"], start["parentId"]) == ("eachstart0", "custom-iteration-start", "each")
    assert graph["nodes"][0]["data"]["start_node_id"] == "eachstart0"
    assert [(edge["source"], edge["target"]) for edge in graph["edges"]] == [("eachstart0", "ask")]


def test_loading_twice_changes_nothing() -> None:
    container, _, first = iteration("each", [node("llm", "ask")], over="a.b", output="ask.text", start_node_id="ask")
    condition = {"logical_operator": "and", "conditions": [{"value": "a"}]}
    graph = loaded(
        container, first, old_tool(proxy=None), node("http-request", "a"), node("if-else", "if", **condition)
    )

    assert as_loaded(graph) == graph


@pytest.mark.parametrize("graph", [None, [], {}, {"nodes": None}, {"nodes": [1, {"data": None}], "edges": [2]}])
def test_what_is_no_graph_stays_as_it_is(graph: object) -> None:
    assert as_loaded(graph) == graph


@pytest.mark.parametrize(
    ("setting", "left", "parameter"),
    [
        ({"type": "constant", "value": 5}, 5, {"type": "constant", "value": 5}),
        ({"type": "mixed", "value": "a{{#b.c#}}"}, "a{{#b.c#}}", {"type": "mixed", "value": "a{{#b.c#}}"}),
        ({"type": "variable", "value": ["b", "c"]}, "{{#b.c#}}", {"type": "variable", "value": ["b", "c"]}),
        ({"type": "constant", "value": None}, None, {"type": "constant", "value": None}),
        ({"type": "constant", "value": ["a"]}, None, {"type": "constant", "value": ["a"]}),
        (
            {"provider": "p", "model": "m", "model_type": "llm", "type": "constant"},
            None,
            {"type": "constant", "value": {"provider": "p", "model": "m", "model_type": "llm"}},
        ),
        ({"value": {"app_id": "a"}}, None, {"type": "constant", "value": {"app_id": "a"}}),
        ("plain", "plain", None),
        ({"other": 1}, {"other": 1}, None),
    ],
)
def test_settings_become_parameters(setting: object, left: object, parameter: object) -> None:
    settings, parameters = handed_on({"x": setting})

    assert settings.get("x") == left
    assert parameters.get("x") == parameter


def test_a_parameter_is_not_replaced_by_a_setting_of_its_name() -> None:
    own = {"type": "constant", "value": "own"}

    assert handed_on({"x": {"type": "constant", "value": "other"}}, {"x": own})[1] == {"x": own}
