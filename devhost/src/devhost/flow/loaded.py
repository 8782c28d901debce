"""Converts the graph of a DSL file as Dify's editor does on import, and as Dify does before it calls the engine.

The editor saves the converted graph when the app is published. That is why an export of 2024 still plays today:
docs/host-facts.md, "What the editor makes of an import".
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from devhost.protocol.wire import JsonObject

INPUT_TYPES = frozenset({"mixed", "variable", "constant"})
RETRIES: JsonObject = {"retry_enabled": True, "max_retries": 3, "retry_interval": 100}
"""The retry settings of an HTTP Request node that has none of its own."""
STARTS = {"iteration": "iteration-start", "loop": "loop-start"}
"""The type of a container's first node, by the type of the container."""


def as_loaded(graph: object) -> object:
    """Returns the graph as the editor loads it. A value without a list of nodes is returned unchanged."""
    if not isinstance(graph, dict) or not isinstance(graph.get("nodes"), list):
        return graph
    loaded: JsonObject = deepcopy(graph)
    nodes = [node for node in loaded["nodes"] if isinstance(node, dict) and isinstance(node.get("data"), dict)]
    for node in nodes:
        _load(node["data"])
    edges = loaded.get("edges")
    if isinstance(edges, list):
        for edge in edges:
            if isinstance(edge, dict) and not edge.get("sourceHandle"):
                edge["sourceHandle"] = "source"
        for number, container in enumerate(_without_start(nodes)):
            start, leads = _start_of(container, number)
            loaded["nodes"].append(start)
            edges.extend(leads)
    return loaded


def _load(data: JsonObject) -> None:
    match data.get("type"):
        case "if-else" if not data.get("cases") and data.get("logical_operator") and data.get("conditions"):
            given = {key: data.pop(key) for key in ("logical_operator", "conditions")}
            data["cases"] = [{"case_id": "true", **given}]
        case "http-request" if not data.get("retry_config"):
            data["retry_config"] = dict(RETRIES)
        case "iteration":
            data["is_parallel"] = data.get("is_parallel") or False
            data["parallel_nums"] = data.get("parallel_nums") or 10
            data["error_handle_mode"] = data.get("error_handle_mode") or "terminated"
        case "tool" if not data.get("version") and not data.get("tool_node_version"):
            data["tool_node_version"] = "2"
            settings = data.get("tool_configurations")
            if isinstance(settings, dict):
                data["tool_configurations"] = {name: _as_input(value) for name, value in settings.items()}


def _as_input(value: object) -> object:
    """Wraps the plain value of an older export, which is null for a setting without a value."""
    if isinstance(value, dict | list):
        return value
    return {"type": "constant", "value": value}


def _without_start(nodes: list[JsonObject]) -> Iterator[JsonObject]:
    """Yields the iterations and loops of older exports, which have no start node of their own."""
    by_id = {node.get("id"): node for node in nodes}
    for kind, first in STARTS.items():
        containers = [node for node in nodes if node["data"].get("type") == kind]
        of_kind = [node for node in containers if not _starts_with(node, first, by_id)]
        yield from sorted(of_kind, key=lambda node: not node["data"].get("start_node_id"))


def _starts_with(container: JsonObject, first: str, by_id: Mapping[object, JsonObject]) -> bool:
    named = by_id.get(container["data"].get("start_node_id"), {})
    return bool(named.get("type") == f"custom-{first}" or named.get("data", {}).get("type") == first)


def _start_of(container: JsonObject, number: int) -> tuple[JsonObject, list[JsonObject]]:
    """Returns a new start node for a container, and an edge from it to the node that was first before."""
    data = container["data"]
    name = f"{container.get('id')}start{number}"
    kind = STARTS[data["type"]]
    began = data.get("start_node_id")
    data["start_node_id"] = name
    start = {
        "id": name,
        "type": f"custom-{kind}",
        "parentId": container.get("id"),
        "data": {"type": kind, "title": "", "desc": ""},
    }
    edge = {"id": f"{name}-source-{began}-target", "source": name, "sourceHandle": "source", "target": began}
    if not began:
        return start, []
    return start, [edge]


# The graph that Dify passes to the engine.


def as_handed_on(graph: JsonObject) -> JsonObject:
    """Turns the settings of Tool nodes into parameters, which the engine resolves like all other parameters."""
    nodes = [{**node, "data": _settings_as_parameters(node["data"])} for node in graph["nodes"]]
    return {**graph, "nodes": nodes}


def _settings_as_parameters(data: JsonObject) -> JsonObject:
    settings = data.get("tool_configurations")
    if data.get("type") != "tool" or not isinstance(settings, dict):
        return data
    parameters: JsonObject = {}
    if isinstance(data.get("tool_parameters"), dict):
        parameters |= data["tool_parameters"]
    left: JsonObject = {}
    for name, value in settings.items():
        match value:
            case dict() if (selector := selector_in(value)) is not None:
                parameters.setdefault(name, {"type": "constant", "value": selector})
            case {"type": kind, **rest} if kind in INPUT_TYPES:
                parameters.setdefault(name, value)
                flat = _flat(kind, rest.get("value"))
                if flat is not None:
                    left[name] = flat
            case _:
                left[name] = value
    return {**data, "tool_configurations": left, "tool_parameters": parameters}


def selector_in(value: Mapping[str, Any]) -> JsonObject | None:
    """Returns the model or app selector that a setting contains, in its `value` or next to a `type`."""
    inner = value.get("value")
    if isinstance(inner, dict) and is_selector(inner):
        return dict(inner)
    if is_selector(value):
        return {key: each for key, each in value.items() if key not in {"type", "value"}}
    return None


def is_selector(value: Mapping[str, Any]) -> bool:
    names_model = all(isinstance(value.get(key), str) for key in ("provider", "model", "model_type"))
    return names_model or isinstance(value.get("app_id"), str)


def _flat(kind: object, value: object) -> object:
    match value:
        case [*parts] if kind == "variable" and all(isinstance(part, str) for part in parts):
            return f"{{{{#{'.'.join(map(str, parts))}#}}}}"
        case str() | int() | float() if kind != "variable":
            return value
        case _:
            return None
