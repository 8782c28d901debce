"""The engine's own nodes, as devhost makes them."""

from pathlib import Path

from devhost.flow.surroundings import FlowTurn
from tests.flows.building import chain, end, iteration, node, start, workflow
from tests.flows.playing import Played


def template(name: str, text: str, **variables: str) -> dict[str, object]:
    listed = [{"variable": key, "value_selector": path.split(".")} for key, path in variables.items()]
    return node("template-transform", name, template=text, variables=listed)


def test_a_workflow_gives_what_its_end_node_lists(tmp_path: Path) -> None:
    nodes = [start("name"), template("greet", "Hello {{ who }}", who="start.name"), end(said="greet.output")]
    file = workflow(tmp_path, nodes, chain("start", "greet", "end"))

    played = Played.of(file, FlowTurn(inputs={"name": "Ada"}), None, {})

    assert played.end.status == "succeeded"
    assert played.end.outputs == {"said": "Hello Ada"}
    assert played.node("greet").inputs == {"who": "Ada"}


def test_an_iteration_runs_its_nodes_once_for_each_item(tmp_path: Path) -> None:
    double = template("double", "{{ item }}{{ item }}", item="each.item")
    nodes = [
        start("words"),
        *iteration("each", [double], over="start.words", output="double.output"),
        end(said="each.output"),
    ]
    file = workflow(tmp_path, nodes, [*chain("start", "each", "end"), ("each_start", "double")])

    played = Played.of(file, FlowTurn(inputs={"words": ["a", "b"]}), None, {})

    assert played.end.outputs == {"said": ["aa", "bb"]}
    assert [ended.outputs["output"] for ended in played.nodes if ended.node.id == "double"] == ["aa", "bb"]
