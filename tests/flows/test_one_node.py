"""`devhost flow --node`: the engine plays one node, and its inputs are the values of its variables."""

import json
from pathlib import Path
from typing import Any

import pytest

from devhost.cli.commands import main
from devhost.flow.alone import NOT_ALONE, NodeAlone
from devhost.flow.document import FlowFile
from devhost.protocol.wire import JsonObject
from devhost.trace.lines import read_trace
from devhost.trace.turns import traced_turns
from support.flow_documents import (
    START,
    answer,
    chain,
    chatflow,
    classifier,
    extractor,
    knowledge,
    llm,
    mixed,
    node,
    start,
    tool,
    variable,
)
from tests.flows.conftest import ROOT

WORKFLOWS = ROOT / "examples" / "workflows"


def played(capsys: pytest.CaptureFixture[str], file: Path, name: str, *given: str, code: int = 0) -> JsonObject:
    """The report of the run, with the node's own as `node`."""
    assert main(["flow", str(file), "--node", name, "--json", *given]) == code
    report = json.loads(capsys.readouterr().out)
    (report["node"],) = report["nodes"]
    return dict(report)


def inputs(**values: str) -> list[str]:
    return [part for name, value in values.items() for part in ("--input", f"{name.replace('__', '.')}={value}")]


def test_a_template_gets_the_values_and_nothing_else_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = tmp_path / "run.jsonl"
    given = [*inputs(agent__error_message="boom"), "--trace", str(trace)]
    report = played(capsys, WORKFLOWS / "error_branch.yml", "What to tell the caller", *given)

    assert report["status"] == "succeeded"
    assert report["node"]["outputs"] == {"output": "The help desk cannot answer at the moment: boom"}
    (turn,) = traced_turns(read_trace(trace))
    assert (turn.facts.node, turn.facts.nodes, turn.facts.inputs) == ("report", 1, {"agent.error_message": "boom"})
    assert [row.node.id for row in turn.rows.values()] == ["report"]


def test_a_branch_is_chosen_by_what_json_says(capsys: pytest.CaptureFixture[str]) -> None:
    file = WORKFLOWS / "approval_form.yml"
    chosen = [
        played(capsys, file, "waits", *inputs(agent__stop_reason=reason))["node"]["outputs"]["selected_case_id"]
        for reason in ("approval_required", "answered")
    ]
    assert chosen == ["true", "false"]


def test_an_answer_says_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    report = played(capsys, WORKFLOWS / "approval_form.yml", "answer", *inputs(agent__text="Hello, you"))

    assert report["outputs"]["answer"] == "Hello, you"


def test_variables_of_the_app_hold_unless_they_are_given(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    kept = {"name": "kept", "value_type": "string", "value": "from the app"}
    key = {"name": "key", "value_type": "string", "value": "7"}
    nodes = [START, answer("{{#conversation.kept#}} {{#env.key#}} {{#sys.query#}}")]
    file = chatflow(
        tmp_path, nodes, chain("start", "answer"), conversation_variables=[kept], environment_variables=[key]
    )

    assert played(capsys, file, "answer", "--query", "Hi")["outputs"]["answer"] == "from the app 7 Hi"
    given = inputs(conversation__kept="given", sys__query="Why?")
    assert played(capsys, file, "answer", *given)["outputs"]["answer"] == "given 7 Why?"


def test_a_node_of_an_iteration_gets_its_item(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    inside = node("template-transform", "inside", template="<{{ x }}>")
    inside["parentId"] = "each"
    inside["data"] |= {"isInIteration": True, "iteration_id": "each"}
    inside["data"]["variables"] = [{"variable": "x", "value_selector": ["each", "item"]}]
    first = node("iteration-start", "first")
    first["parentId"] = "each"
    each = node("iteration", "each", iterator_selector=["start", "all"], start_node_id="first")
    file = chatflow(tmp_path, [start("all"), each, first, inside, answer("x")], chain("start", "each", "answer"))

    report = played(capsys, file, "inside", *inputs(each__item="tea"))

    assert report["node"]["outputs"] == {"output": "<tea>"}


def test_the_script_answers_for_a_model_and_a_person(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    nodes = [START, classifier("sort", "tea", "rice"), llm("ask", ("user", "{{#sort.class_name#}}")), answer("x")]
    file = chatflow(tmp_path, nodes, chain("start", "sort", "ask", "answer"))
    script = tmp_path / "script.yaml"
    script.write_text("query: Hi\nmodels: {ask: [{text: Green}]}\nexpect: {answer: x}\n")

    report = played(capsys, file, "ask", "--script", str(script), *inputs(sort__class_name="tea"))
    assert report["node"]["outputs"]["text"] == "Green"
    assert [part["text"] for part in report["node"]["process"]["prompts"]] == ["tea"]

    approval = WORKFLOWS / "cases" / "approval_form.yaml"
    given = ["--script", str(approval), *inputs(agent__approval_question="Send?")]
    form = played(capsys, WORKFLOWS / "approval_form.yml", "form", *given)
    assert form["node"]["outputs"]["__action_id"] == "yes"


def test_an_agent_runs_with_its_strategy_and_tools(capsys: pytest.CaptureFixture[str]) -> None:
    script = WORKFLOWS / "cases" / "approval.yaml"
    report = played(capsys, WORKFLOWS / "approval.yml", "agent", "--script", str(script), "--scripted")

    (call,) = report["node"]["outputs"]["tool_runs"]
    assert call["tool"] == "search_documents"


def test_a_node_that_fails_is_an_exit_code(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = node("template-transform", "broken", template="{{ x / 0 }}", variables=[])
    broken["data"]["variables"] = [{"variable": "x", "value_selector": ["sys", "query"]}]
    file = chatflow(tmp_path, [START, broken, answer("x")], chain("start", "broken", "answer"))

    report = played(capsys, file, "broken", code=1)

    assert (report["status"], report["node"]["status"]) == ("failed", "failed")
    assert report["error"]


def test_what_the_engine_says_a_node_reads_is_among_its_inputs(tmp_path: Path) -> None:
    """By `extract_variable_selector_to_variable_mapping`, from which Dify makes the inputs of "Run this step"."""
    from graphon.nodes.base.node import Node  # noqa: PLC0415 - where the engine is

    import devhost.flow.engine.factory  # noqa: F401, PLC0415 - so that the classes of all nodes are known

    nodes = [
        *(start("a", "b"), classifier("sort", "tea", "rice"), extractor("take", {"size": "string"})),
        *(knowledge("look", "start.a"), llm("ask", ("system", "{{#look.result#}}"), ("user", "{{#start.b#}}"))),
        tool("toolbox", "repeat", word=mixed("{{#ask.text#}}"), times=variable("take.size")),
        node(
            "template-transform", "show", template="x", variables=[{"variable": "v", "value_selector": ["start", "a"]}]
        ),
        answer("{{#repeat.text#}} {{#show.output#}}"),
    ]
    own = chatflow(tmp_path, nodes, chain("start", "sort", "take", "look", "ask", "repeat", "show", "answer"))
    classes = Node.get_node_type_classes_mapping()
    named = set[str]()
    for file in (own, *WORKFLOWS.glob("*.yml")):
        flow = FlowFile.read(file)
        for each in flow.nodes.values():
            if each.type in NOT_ALONE:
                continue
            made = classes[each.type][str(each.data.get("version", "1"))]
            config: Any = {"id": each.id, "data": made.validate_node_data(each.data)}
            read = made.extract_variable_selector_to_variable_mapping(graph_config=flow.graph, config=config)
            names = {".".join(selector[:2]) for selector in read.values() if selector[0] != "env"}
            named |= {each.type} if names else set()
            assert names <= NodeAlone.of(flow, each.id).inputs.keys(), each
    assert named >= {"llm", "question-classifier", "parameter-extractor", "tool", "template-transform", "answer"}
