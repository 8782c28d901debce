"""`devhost flow` as a process: what it prints, its object, its trace, and what the engine tells the rows."""

import json
import subprocess
import sys
from pathlib import Path

from devhost.flow.turn import FlowTurn
from devhost.host.host import Host
from devhost.page.page import render_page
from devhost.protocol.wire import JsonObject
from devhost.trace.flow import NodeStarted
from devhost.trace.lines import read_trace
from support.flow_documents import START, answer, chatflow, iteration, llm
from support.terminal_session import CTRL_C, on_a_terminal
from tests.flows.playing import ROOT, Played

FLOW = ["-m", "devhost", "flow", "examples/workflows/approval.yml", "--example", "injection"]
MODELS: JsonObject = {"agent": [{"text": "Two documents."}]}


def script(folder: Path, **models: object) -> str:
    file = folder / "answers.yaml"
    file.write_text(json.dumps({"query": "What is there?", "models": models or MODELS}), "utf-8")
    return str(file)


def test_a_node_in_an_iteration_knows_its_round(tmp_path: Path) -> None:
    nodes = [
        START,
        *iteration("each", [llm("ask", ("user", "{{#each.item#}}"))], "conversation.rooms", "ask.text"),
        answer("{{#each.output#}}"),
    ]
    edges = [("start", "each"), ("each_start", "ask"), ("each", "answer")]
    rooms = {"name": "rooms", "value_type": "array[string]", "value": ["hall", "kitchen"]}
    file = chatflow(tmp_path, nodes, edges, conversation_variables=[rooms])
    played = Played.of(file, FlowTurn("?"), None, {"ask": [{"text": "big"}, {"text": "small"}]})

    started = [(event.node.id, event.round) for event in played.events if isinstance(event, NodeStarted)]
    assert started == [("start", None), ("each", None), ("ask", 1), ("ask", 2), ("answer", None)]


def test_an_agent_nodes_row_has_its_parameters_as_inputs(office: Host) -> None:
    file = ROOT / "examples" / "workflows" / "approval.yml"
    inputs = Played.of(file, FlowTurn("What is there?"), office, MODELS).node("agent").inputs

    assert inputs["query"] == "What is there?"
    assert "model" not in inputs


def test_the_object_of_json_has_the_agents_run_and_the_trace_shows_the_flow_again(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    options = ["--script", script(tmp_path), "--json", "--strict", "--trace", str(trace)]
    ran = subprocess.run([sys.executable, *FLOW, *options], cwd=ROOT, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    nodes = {node["id"]: node for node in report["nodes"]}
    assert (report["status"], report["outputs"]["answer"]) == ("succeeded", "Two documents.")
    assert nodes["agent"]["run"]["text"] == "Two documents."
    assert nodes["agent"]["run"]["model"]["scripted"]
    assert "run" not in nodes["start"]

    replay = [sys.executable, "-m", "devhost", "replay", str(trace)]
    shown = subprocess.run(replay, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "scripted model: the answers are written in" in ran.stderr
    *lines, seconds = [line for line in ran.stderr.splitlines() if not line.startswith("starting ")]
    assert shown.splitlines()[:-1] == lines
    assert seconds.startswith("finished in ")

    page = render_page(read_trace(trace))
    assert page.count("<summary>The agent's run</summary>") == 1
    assert "<b>ROUND 1</b>" in page


def test_ctrl_c_shows_how_far_the_flow_has_come_and_ends_it(tmp_path: Path) -> None:
    slow = script(tmp_path, agent=[{"text": "Two documents.", "delay": 60}])
    with on_a_terminal([*FLOW, "--script", slow], ROOT) as session:
        session.wait_for("gpt-5")
        session.press(CTRL_C)
        shown = session.wait_for_the_end()

    assert "nodes until Ctrl-C" in shown
    assert "Agent  agent  not finished" in shown
    assert session.process.wait() == 130
