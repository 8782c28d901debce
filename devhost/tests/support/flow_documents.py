"""Builds small flows in the form in which Dify exports them, for tests.

In: nodes and edges in few words. Out: a DSL file.

    file = chatflow(tmp_path, [START, llm("ask"), answer("{{#ask.text#}}")], chain("start", "ask", "answer"))
"""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from devhost.protocol.wire import JsonObject

type Edge = tuple[str, str] | tuple[str, str, str]
"""Source and target, and the source's handle if it is not `source`, such as `fail-branch`, `true` or a class's id."""

MODEL: JsonObject = {
    "provider": "langgenius/openai/openai",
    "name": "gpt-5",
    "mode": "chat",
    "completion_params": {"temperature": 0.5},
}


def node(kind: str, name: str, **data: object) -> JsonObject:
    """A node whose id is its name; `data` is as in the DSL."""
    return {"id": name, "type": "custom", "data": {"type": kind, "title": name.capitalize(), "desc": "", **data}}


def start(*variables: str) -> JsonObject:
    """With a paragraph field for each variable."""
    fields = [{"variable": name, "label": name, "type": "paragraph", "required": False} for name in variables]
    return node("start", "start", variables=fields)


START = start()


def answer(text: str, name: str = "answer") -> JsonObject:
    return node("answer", name, answer=text, variables=[])


def end(name: str = "end", **outputs: str) -> JsonObject:
    """`outputs`: by name, the selector as `node.variable`."""
    listed = [
        {"variable": key, "value_selector": path.split("."), "value_type": "any"} for key, path in outputs.items()
    ]
    return node("end", name, outputs=listed)


def llm(name: str, *prompts: tuple[str, str], **data: object) -> JsonObject:
    """`prompts`: role and text of each message; by default the user's query alone."""
    messages = [{"role": role, "text": text} for role, text in prompts or (("user", "{{#sys.query#}}"),)]
    given: JsonObject = {
        "model": MODEL,
        "prompt_template": messages,
        "context": {"enabled": False, "variable_selector": []},
        "vision": {"enabled": False},
    }
    return node("llm", name, **{**given, **data})


def classifier(name: str, *classes: str, **data: object) -> JsonObject:
    """Of the user's query; the ids of the classes, and the handles of their edges, count from `1`."""
    given: JsonObject = {
        "model": MODEL,
        "query_variable_selector": ["sys", "query"],
        "classes": [{"id": str(number), "name": topic} for number, topic in enumerate(classes, 1)],
        "vision": {"enabled": False},
    }
    return node("question-classifier", name, **{**given, **data})


def extractor(name: str, parameters: dict[str, str], **data: object) -> JsonObject:
    """Of the user's query; `parameters` are required ones: type by name."""
    given: JsonObject = {
        "model": MODEL,
        "query": ["sys", "query"],
        "parameters": [
            {"name": key, "type": kind, "description": f"The {key}.", "required": True}
            for key, kind in parameters.items()
        ],
        "reasoning_mode": "function_call",
        "vision": {"enabled": False},
    }
    return node("parameter-extractor", name, **{**given, **data})


def knowledge(name: str, query: str = "sys.query", **data: object) -> JsonObject:
    """`query` is `node.variable`."""
    given = {"query_variable_selector": query.split("."), "dataset_ids": ["d1"], "retrieval_mode": "multiple"}
    return node("knowledge-retrieval", name, **{**given, **data})


def tool(plugin: str, name: str, *, settings: JsonObject | None = None, **parameters: JsonObject) -> JsonObject:
    """A Tool node with the id `name`, for a plugin of `devhost/tests/fixtures`; each value as `{type, value}`."""
    provider = f"devhost-tests/{plugin}/{plugin}"
    return node(
        "tool",
        name,
        provider_id=provider,
        provider_name=provider,
        provider_type="builtin",
        tool_name=name,
        tool_label=name,
        tool_node_version="2",
        tool_configurations=settings or {},
        tool_parameters=parameters,
    )


def mixed(text: str) -> JsonObject:
    """A template in a parameter of a tool."""
    return {"type": "mixed", "value": text}


def variable(path: str) -> JsonObject:
    """A variable in a parameter of a tool."""
    return {"type": "variable", "value": path.split(".")}


def iteration(name: str, inside: Sequence[JsonObject], over: str, output: str, **data: object) -> list[JsonObject]:
    """The container and its nodes, whose edges begin at `NAME_start`; `over` and `output` are `node.variable`."""
    given: JsonObject = {
        "start_node_id": f"{name}_start",
        "iterator_selector": over.split("."),
        "output_selector": output.split("."),
    }
    first = {**node("iteration-start", f"{name}_start"), "type": "custom-iteration-start"}
    return [
        node("iteration", name, **{**given, **data}),
        *(
            {**each, "parentId": name, "data": {**each["data"], "isInIteration": True, "iteration_id": name}}
            for each in (first, *inside)
        ),
    ]


def chain(*names: str) -> list[Edge]:
    """An edge from each node to the next."""
    return list(itertools.pairwise(names))


def chatflow(folder: Path, nodes: Sequence[JsonObject], edges: Iterable[Edge], **workflow: object) -> Path:
    """`workflow`: further keys beside the graph, such as `conversation_variables`."""
    return _file(folder, "advanced-chat", nodes, edges, workflow)


def workflow(folder: Path, nodes: Sequence[JsonObject], edges: Iterable[Edge], **workflow: object) -> Path:
    return _file(folder, "workflow", nodes, edges, workflow)


def _file(folder: Path, mode: str, nodes: Sequence[JsonObject], edges: Iterable[Edge], workflow: JsonObject) -> Path:
    graph = {
        "nodes": list(nodes),
        "edges": [_edge(*edge, data={each["id"]: each["data"] for each in nodes}) for edge in edges],
    }
    document = {
        "kind": "app",
        "version": "0.6.0",
        "app": {"name": "Test", "mode": mode, "description": "", "icon": "T", "icon_background": "#FFFFFF"},
        "dependencies": [],
        "workflow": {
            "conversation_variables": [],
            "environment_variables": [],
            "features": {},
            **workflow,
            "graph": graph,
        },
    }
    file = folder / "flow.yml"
    file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return file


def _edge(source: str, target: str, handle: str = "source", *, data: JsonObject) -> JsonObject:
    inside = {key: value for key, value in data[target].items() if key in {"isInIteration", "iteration_id"}}
    return {
        "id": f"{source}-{handle}-{target}",
        "type": "custom",
        "source": source,
        "sourceHandle": handle,
        "target": target,
        "targetHandle": "target",
        "data": {"sourceType": data[source]["type"], "targetType": data[target]["type"], **inside},
    }
