"""A flow's DSL, read for the tests: its nodes, its edges, and what each node refers to and puts out.

In: the YAML of an app. Out: a `Workflow`. What a node may hold is the engine's business: tests/flows builds every flow.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]

SYSTEM = {"query", "files", "conversation_id", "user_id", "dialogue_count", "app_id", "workflow_id", "workflow_run_id"}
OF_EVERY_AGENT = {"text", "files", "json", "usage"}
OF_A_FAILURE = {"error_message", "error_type"}
OF_A_FORM = {"__action_id", "__rendered_content"}
_IN_A_TEXT = re.compile(r"\{\{#([a-zA-Z0-9_-]{1,50}(?:\.[a-zA-Z_][a-zA-Z0-9_]{0,29}){1,10})#\}\}")

type Selector = tuple[str, ...]


@dataclass(frozen=True)
class Node:
    id: str
    data: Mapping[str, Any]

    @property
    def type(self) -> str:
        return str(self.data["type"])

    @cached_property
    def handles(self) -> set[str]:
        """Where its edges may begin."""
        if self.type in {"answer", "end"}:
            return set()
        if self.type == "if-else":
            return {*(case["case_id"] for case in self.data["cases"]), "false"}
        if self.type == "human-input":
            return {*(action["id"] for action in self.data["user_actions"]), "__timeout"}
        return {"source", "fail-branch"} if self.data.get("error_strategy") == "fail-branch" else {"source"}

    def selectors(self) -> set[Selector]:
        """Of what lies inside an object, the object's."""
        return {selector[:2] for selector in _selectors(self.data)}

    def outputs(self, handle: str) -> set[str]:
        """What it has put out when the run goes on at this handle."""
        if self.type == "agent":
            return (
                OF_A_FAILURE
                if handle == "fail-branch"
                else {*OF_EVERY_AGENT, *self.strategy["output_schema"]["properties"]}
            )
        if self.type == "human-input":
            return OF_A_FORM | {field["output_variable_name"] for field in self.data["inputs"]}
        if self.type == "start":
            return {field["variable"] for field in self.data["variables"]}
        if self.type == "code":
            return set(self.data["outputs"])
        return {"template-transform": {"output"}, "knowledge-retrieval": {"result"}}.get(self.type, set())

    @property
    def strategy(self) -> dict[str, Any]:
        """The YAML of an Agent node's strategy."""
        return read_yaml(ROOT / "strategies" / f"{self.data['agent_strategy_name']}.yaml")


@dataclass(frozen=True)
class Edge:
    source: str
    handle: str
    target: str
    types: tuple[str, str]


@dataclass(frozen=True)
class Workflow:
    app: Mapping[str, Any]

    @classmethod
    def read(cls, file: Path) -> "Workflow":
        return cls(read_yaml(file))

    @property
    def _graph(self) -> Mapping[str, Any]:
        graph: Mapping[str, Any] = self.app["workflow"]["graph"]
        return graph

    @cached_property
    def nodes(self) -> dict[str, Node]:
        return {
            node["id"]: Node(node["id"], node["data"]) for node in self._graph["nodes"] if node["type"] != "custom-note"
        }

    @property
    def agents(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.type == "agent"]

    @cached_property
    def edges(self) -> list[Edge]:
        return [
            Edge(
                edge["source"],
                edge["sourceHandle"],
                edge["target"],
                (edge["data"]["sourceType"], edge["data"]["targetType"]),
            )
            for edge in self._graph["edges"]
        ]

    @property
    def conversation(self) -> dict[str, str]:
        """The types of the conversation variables, by name."""
        return {each["name"]: each["value_type"] for each in self.app["workflow"]["conversation_variables"]}

    @property
    def assignments(self) -> list[dict[str, Any]]:
        """What its Variable Assigners do, one after another."""
        return [item for node in self.nodes.values() if node.type == "assigner" for item in node.data["items"]]

    def ways_to(self, node: str) -> list[list[Edge]]:
        """Every way from the start to the node."""
        if self.nodes[node].type == "start":
            return [[]]
        return [[*way, edge] for edge in self.edges if edge.target == node for way in self.ways_to(edge.source)]

    def known_on(self, way: list[Edge]) -> set[Selector]:
        """What a node at the end of this way may refer to."""
        known = {("sys", name) for name in SYSTEM} | {("conversation", name) for name in self.conversation}
        return known | {(edge.source, name) for edge in way for name in self.nodes[edge.source].outputs(edge.handle)}


def read_yaml(file: Path) -> dict[str, Any]:
    value: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return value


def _selectors(value: object, key: str = "") -> Iterator[Selector]:
    if isinstance(value, str):
        yield from (tuple(found.split(".")) for found in _IN_A_TEXT.findall(value))
    elif isinstance(value, Mapping):
        chosen = (
            value.get("value") if value.get("input_type") == "variable" or value.get("type") == "variable" else None
        )
        if isinstance(chosen, list):
            yield tuple(chosen)
        for name, inner in value.items():
            yield from _selectors(inner, str(name))
    elif isinstance(value, list) and key in {"variable_selector", "value_selector", "selector"}:
        if value:
            yield tuple(value)
    elif isinstance(value, list):
        for inner in value:
            yield from _selectors(inner)
