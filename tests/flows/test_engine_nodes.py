"""The engine's own nodes, as devhost makes them."""

from pathlib import Path

import pytest

from devhost.errors import FlowFileError
from devhost.flow.turn import FlowTurn
from devhost.protocol.wire import JsonObject
from support.flow_documents import Edge, chain, end, iteration, node, start, workflow
from tests.flows.playing import Played


def template(name: str, text: str, **variables: str) -> dict[str, object]:
    listed = [{"variable": key, "value_selector": path.split(".")} for key, path in variables.items()]
    return node("template-transform", name, template=text, variables=listed)


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


def test_a_template_that_costs_too_much_fails_its_node(tmp_path: Path) -> None:
    nodes = [start("word"), template("long", "{{ word * 10**10 }}", word="start.word"), end(said="long.output")]
    file = workflow(tmp_path, nodes, chain("start", "long", "end"))

    played = Played.of(file, FlowTurn(inputs={"word": "x"}), None, {})

    assert played.end.status == "failed"
    assert "the template was ended because it needed more than 536,870,912 bytes" in played.node("long").error


@pytest.mark.parametrize(
    ("nodes", "edges", "sentence"),
    [
        (
            [
                start(),
                node("if-else", "choose", cases=[{"case_id": "a", "logical_operator": "nand", "conditions": []}]),
            ],
            [("start", "choose")],
            r"node 'Choose' \(choose\): cases\[0\]\.logical_operator: Input should be 'and' or 'or'",
        ),
        (
            [start(), node("answer", "say", ansewr="Hi", variables=[])],
            [("start", "say")],
            r"node 'Say' \(say\): answer: Field required",
        ),
        (
            [start(), template("one", "1"), template("two", "2")],
            [("start", "one"), ("one", "two"), ("two", "one")],
            r"contains a cycle: ",
        ),
    ],
    ids=["a value", "a missing key", "a circle"],
)
def test_what_the_engine_does_not_take_is_one_error_that_names_the_place(
    tmp_path: Path, nodes: list[JsonObject], edges: list[Edge], sentence: str
) -> None:
    file = workflow(tmp_path, nodes, edges)

    with pytest.raises(FlowFileError, match=sentence):
        Played.of(file, FlowTurn(), None, {})
