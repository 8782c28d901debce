"""The Agent node on the engine: its text, outputs and errors go where other nodes find them."""

import json
from pathlib import Path

import pytest

from devhost.errors import ParameterError
from devhost.flow.cases import failed_expectations
from devhost.flow.document import FlowFile
from devhost.flow.engine.play import play
from devhost.flow.turn import FlowTurn
from devhost.host.host import Host
from devhost.protocol.wire import JsonObject
from devhost.trace.flow import AnswerText, FlowEvent, NodeEnded
from support.evaluating import call
from support.flow_documents import START, answer, chain, chatflow, node
from tests.flows.playing import WORKFLOWS, Played, surroundings

APPROVAL = WORKFLOWS / "approval.yml"
TURN = FlowTurn("What is there?", conversation_id="c1")


def test_an_agents_text_streams_through_the_answer_node(office: Host) -> None:
    words = "Two documents, and both are short; " * 60 + "so it is."
    played = Played.of(APPROVAL, TURN, office, {"agent": [{"text": words, "chunk_size": 50, "delay": 0.02}]})

    texts = [event.text for event in played.events if isinstance(event, AnswerText)]
    assert "".join(texts) == words
    assert len(texts) > 1
    assert played.end.outputs == {"answer": words, "files": []}
    assert played.end.status == "succeeded"


def test_a_failed_run_takes_the_error_branch(office: Host) -> None:
    error = {"type": "InvokeAuthorizationError", "message": "no such key"}
    played = Played.of(APPROVAL, TURN, office, {"agent": [{"error": error}]})

    agent = played.node("agent")
    assert agent.status == "exception"
    assert "refused its credentials" in agent.error
    assert [node.node.id for node in played.nodes] == ["start", "agent", "clear", "failed"]
    assert played.end.status == "partial-succeeded"
    assert played.end.outputs["answer"].startswith("I could not answer this time. Please try again")


def test_what_was_shown_before_a_failure_ends_in_a_line_and_the_default_value_is_not_shown(office: Host) -> None:
    words = "It begins in spring, and it goes on for long. " * 20
    failed = {"text": words, "error": {"type": "InvokeAuthorizationError", "message": "no such key", "after_chunks": 2}}
    played = Played.of(WORKFLOWS / "start_here.yml", TURN, office, {"agent": [{**failed, "chunk_size": 450}]})

    shown = "".join(event.text for event in played.events if isinstance(event, AnswerText))
    assert shown.startswith("It begins in spring")
    assert shown.endswith("\n\n(An error ended the run here.)")
    assert played.end.outputs["answer"] == "I could not answer this time. Please try again in a moment."


def test_a_mistake_of_the_command_ends_the_flow_and_takes_no_error_branch(office: Host) -> None:
    told: list[FlowEvent] = []

    with pytest.raises(
        ParameterError, match="the script has no turns for node 'Agent' \\(agent\\): write them in models"
    ):
        told.extend(play(FlowFile.read(APPROVAL), TURN, surroundings(office, {})))

    assert [event.node.id for event in told if isinstance(event, NodeEnded)] == ["start"]


def test_an_answer_goes_on_after_the_text_of_an_agent(office: Host, tmp_path: Path) -> None:
    approval = APPROVAL.read_text(encoding="utf-8")
    words = "Hi. {{#agent.text#}} You asked: {{#sys.query#}} ({{#agent.stop_reason#}}) Bye."
    file = tmp_path / "flow.yml"
    file.write_text(approval.replace('answer: "{{#agent.text#}}"', f'answer: "{words}"'), encoding="utf-8")
    played = Played.of(file, TURN, office, {"agent": [{"text": "Two documents."}]})

    shown = "".join(event.text for event in played.events if isinstance(event, AnswerText))
    assert shown == "Hi. Two documents. You asked: What is there? (answered) Bye."
    assert shown == played.end.outputs["answer"]


def agent(*tools: JsonObject, model: JsonObject, steps: list[JsonObject]) -> JsonObject:
    values = {"model": model, "tools": list(tools), "query": json.dumps(steps)}
    parameters = {name: {"type": "constant", "value": value} for name, value in values.items()}
    given = {"agent_strategy_name": "puppet", "agent_parameters": parameters, "tool_node_version": "2"}
    return node("agent", "agent", **given)


def test_the_strategy_gets_the_nodes_tools_and_model_and_can_call_any_tool(tmp_path: Path, puppet: Host) -> None:
    repeat = {
        "provider_name": "devhost-tests/toolbox/toolbox",
        "tool_name": "repeat",
        "enabled": True,
        "settings": {"separator": {"value": {"type": "mixed", "value": "{{#sys.query#}}"}}},
        "parameters": {"word": {"auto": 1, "value": None}},
        "extra": {"description": ""},
    }
    model = {"provider": "langgenius/openai/openai", "model": "gpt-5", "completion_params": {"temperature": 0.5}}
    called = {
        "provider": "devhost-tests/toolbox/toolbox",
        "tool_name": "repeat",
        "parameters": {"word": "yes", "separator": "/"},
    }
    given = agent(repeat, model=model, steps=[{"show_parameters": None}, {"call": called}])
    file = chatflow(tmp_path, [START, given, answer("{{#agent.text#}}")], chain("start", "agent", "answer"))

    played = Played.of(file, FlowTurn("and"), puppet, {"agent": [{"text": "."}]})

    outputs = played.node("agent").outputs
    (tool,) = outputs["parameters"]["tools"]
    assert tool["identity"]["name"] == "repeat"
    assert tool["runtime_parameters"] == {"separator": "and"}
    chosen = outputs["parameters"]["model"]
    assert (chosen["model"], chosen["completion_params"]) == ("gpt-5", {"temperature": 0.5})
    assert outputs["tool_messages"][0]["message"] == {"text": "yes/yes"}


def test_a_strategy_gets_what_the_start_node_puts_out(tmp_path: Path, puppet: Host) -> None:
    given = agent(model={}, steps=[])
    given["data"]["agent_parameters"]["query"] = {"type": "variable", "value": ["start", "sys.query"]}
    file = chatflow(tmp_path, [START, given, answer("{{#agent.text#}}")], chain("start", "agent", "answer"))

    played = Played.of(file, FlowTurn('[{"say": "yes"}]'), puppet, {"agent": [{"text": "."}]})

    assert played.end.outputs["answer"] == "yes"


def test_a_case_can_ask_for_no_failed_call(tmp_path: Path, puppet: Host) -> None:
    draws = agent(model={"provider": "langgenius/openai/openai", "model": "gpt-5"}, steps=[call("draw")])
    chatflow(tmp_path, [START, draws, answer("Drawn.")], chain("start", "agent", "answer"))
    case = tmp_path / "case.yaml"
    expect = "{nodes: {agent: {failed_calls: 0}}}"
    case.write_text(f"{{flow: flow.yml, query: Draw, models: {{agent: [{{text: .}}]}}, expect: {expect}}}")

    found = "found 1: draw: KeyError: 'size', tools/draw.py:10"
    sentence = f"turn 1 (Draw): node 'Agent' (agent): failed_calls: expected at most 0; {found}"
    assert failed_expectations(case, puppet) == [sentence]
