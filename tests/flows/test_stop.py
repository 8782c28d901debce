"""A turn that ends before its nodes do, by a person's stop or because of another branch, ends what they wait for."""

import json
import threading
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from typing import Any

import pytest

from devhost.flow.document import FlowFile
from devhost.flow.engine.play import play
from devhost.flow.turn import FlowTurn
from devhost.host.host import Host
from devhost.models.backend import ModelBackend
from devhost.node.outputs.run import Run
from devhost.process.session import Stop
from devhost.protocol.wire import JsonObject
from devhost.text import load_yaml
from devhost.trace.flow import AgentLogLine, FlowEnded, FlowNode, NodeEnded, NodeStarted
from support.flow_documents import START, Edge, answer, chatflow, llm, tool
from support.waiting import PATIENCE, wait_for
from tests.flows.playing import WORKFLOWS, surroundings

SLOWLY = {"text": ["tick "] * 100 * PATIENCE, "delay": 0.1}
FROZEN = tool("oddments", "perform", steps={"type": "constant", "value": json.dumps([["freeze", 100 * PATIENCE]])})


def has_ended() -> bool:
    """Whether no node works any longer."""
    return not any(thread.name.startswith("EngineWorker") for thread in threading.enumerate())


def test_a_stop_ends_the_turn_and_takes_no_error_branch(office: Host) -> None:
    stop = Stop()
    around = replace(surroundings(office, {"agent": [SLOWLY]}), stop=stop)

    events = []
    for event in play(FlowFile.read(WORKFLOWS / "approval.yml"), FlowTurn("What is there?"), around):
        events.append(event)
        if isinstance(event, AgentLogLine):
            stop.request()

    end = events[-1]
    assert isinstance(end, FlowEnded)
    assert (end.status, end.error) == ("stopped", "Aborted: by the user")
    assert [event.node.id for event in events if isinstance(event, NodeEnded)][:1] == ["start"]
    assert not any(isinstance(event, NodeEnded) and event.node.id in {"clear", "failed"} for event in events)


@pytest.mark.parametrize("slow", [llm("slow"), {**FROZEN, "id": "slow"}], ids=["model", "tool"])
def test_a_stop_ends_what_a_node_waits_for(slow: JsonObject, tmp_path: Path, puppet: Host) -> None:
    slow = {**slow, "data": {**slow["data"], "error_strategy": "fail-branch"}}
    edges: list[Edge] = [("start", "slow"), ("slow", "done"), ("slow", "failed", "fail-branch")]
    file = FlowFile.read(chatflow(tmp_path, [START, slow, answer("done", "done"), answer("failed", "failed")], edges))
    stop = Stop()
    events = []

    for event in play(file, FlowTurn("Go"), replace(surroundings(puppet, {"slow": [SLOWLY]}), stop=stop)):
        events.append(event)
        if isinstance(event, NodeStarted) and event.node.id == "slow":
            stop.request()

    assert isinstance(event, FlowEnded)
    assert event.status == "stopped"
    assert [each.node.id for each in events if isinstance(each, NodeEnded)] == ["start"]
    wait_for(has_ended, "the workers")


def test_an_agent_does_not_go_on_after_the_failure_of_another_branch(
    office: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = SimpleQueue[Run]()
    begun = Event()
    run = office.run
    workflow = load_yaml(WORKFLOWS / "approval.yml")["workflow"]
    agent = next(each for each in workflow["graph"]["nodes"] if each["id"] == "agent")
    file = chatflow(
        tmp_path,
        [START, agent, llm("fails"), answer("{{#agent.text#}}")],
        [("start", "agent"), ("start", "fails"), ("agent", "answer")],
        conversation_variables=workflow["conversation_variables"],
    )
    around = surroundings(office, {"agent": [SLOWLY], "fails": [{"error": {"type": "InvokeError", "message": "busy"}}]})

    def kept(*arguments: Any, **options: Any) -> Run:  # noqa: ANN401 - those of Host.run
        ended = run(*arguments, **options)
        runs.put(ended)
        return ended

    def model(asking: FlowNode) -> ModelBackend:
        begun.set() if asking.id == "agent" else begun.wait(PATIENCE)
        return around.model(asking)

    monkeypatch.setattr(office, "run", kept)
    events = list(play(FlowFile.read(file), FlowTurn("Go"), replace(around, model=model)))

    assert isinstance(events[-1], FlowEnded)
    assert events[-1].status == "failed"
    stopped = runs.get(timeout=PATIENCE)
    assert stopped.was_stopped
    wait_for(has_ended, "the workers")
