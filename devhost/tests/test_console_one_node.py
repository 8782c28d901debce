"""The console's page of one node: its inputs are as they were in the turn, and are given to `devhost flow --node`."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from devhost.console.one_node import form_of
from devhost.console.setup import Setup
from devhost.flow.document import FlowFile
from devhost.flow.traces import FlowTrace
from devhost.protocol.wire import JsonObject
from devhost.trace.flow import FlowEnded, FlowEvent, NodeEnded, NodeStarted
from support.console import ConsoleClient, start_instead, words
from support.flow_documents import answer, chain, chatflow, node, start
from support.plugins import PUPPET
from support.tracing import tracing
from test_flow_view import FACTS

SHOW = "{{#start.topic#}} {{#count.number#}} {{#count.text#}} {{#sys.query#}} {{#conversation.kept#}}"
KEPT = {"name": "kept", "value_type": "string", "value": ""}


@pytest.fixture
def console(tmp_path: Path) -> Iterator[ConsoleClient]:
    """With two turns of a flow, of which the second one fails at its last node."""
    count = node("template-transform", "count", template="x", variables=[])
    file = chatflow(
        tmp_path,
        [start("topic"), count, answer(SHOW)],
        chain("start", "count", "answer"),
        conversation_variables=[KEPT],
    )
    nodes = FlowFile.read(file).nodes

    def ran(name: str, turn: int, outputs: JsonObject) -> list[FlowEvent]:
        begun = NodeStarted(f"{name}-{turn}", nodes[name])
        return [begun, NodeEnded(f"{name}-{turn}", nodes[name], "succeeded", {}, outputs, 0.1)]

    with tracing(tmp_path / "flow.jsonl", command="flow") as writer:
        for turn, query in ((1, "What?"), (2, "And now?")):
            facts = replace(FACTS, file=str(file), turn=turn, query=query)
            events = [
                *ran("start", turn, {"topic": f"tea {turn}", "sys.query": query}),
                *ran("count", turn, {"number": turn, "text": "7"}),
                *ran("answer", turn, {"answer": "done"}),
                FlowEnded("succeeded", {"answer": "done"}, "", {"kept": f"after {turn}"}),
            ]
            list(FlowTrace(writer).of_turn(facts, events))
    console = ConsoleClient(tmp_path, PUPPET)
    yield console
    console.close()


def texts(console: ConsoleClient, **values: str) -> dict[str, str]:
    return {field.name: field.text for field in form_of(console.console, "flow", {"node": "answer", **values}).fields}


def test_its_inputs_are_as_they_were_in_the_turn(console: ConsoleClient) -> None:
    assert texts(console, turn="1") == {
        "conversation.kept": "",
        "count.number": "1",
        "count.text": '"7"',
        "start.topic": "tea 1",
        "sys.query": "What?",
    }
    assert texts(console) == {
        "conversation.kept": "after 1",
        "count.number": "2",
        "count.text": '"7"',
        "start.topic": "tea 2",
        "sys.query": "And now?",
    }


def test_an_input_whose_label_is_its_name_says_it_once(console: ConsoleClient) -> None:
    page = console.get("/runs/flow/node?node=answer")
    assert '<label for="p.sys.query">sys.query</label>' in page


def test_a_changed_input_is_given_to_the_command_with_all_others(
    console: ConsoleClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_instead(monkeypatch, "pass")
    where = console.post(
        "/runs/flow/node", 303, **{"turn": "1", "node": "answer", "p.start.topic": "rice", "do": "start"}
    )

    setup = console.console.folder.setup(where.removeprefix("/runs/"))
    assert setup is not None
    arguments = setup.arguments(Path)
    assert arguments[:2] == ("flow", "run")
    assert arguments[arguments.index("--node") + 1] == "answer"
    given = [arguments[at + 1] for at, name in enumerate(arguments) if name == "--input"]
    assert given == ["count.number=1", 'count.text="7"', "start.topic=rice", "sys.query=What?"]
    assert "--scripted" in arguments
    assert "answer" in words(console.get("/")), "its name in the list is that of the node"
    assert "/new?from=" not in console.get(where), "the form of a new run would start the whole flow"


def test_the_way_it_was_started_is_kept(console: ConsoleClient) -> None:
    values = {"source": "flow:flow.yml", "p.topic": "tea", "p.query": "What?", "code": "yes", "play": "chat"}
    Setup(kind="flow", values=values).write(console.console.folder.beside("flow", ".setup.json"))

    kept = form_of(console.console, "flow", {"node": "count"}).setup.values

    assert kept == {"source": "flow:flow.yml", "code": "yes", "play": "run", "node": "count"}


def test_a_run_has_a_link_for_each_node_that_can_be_run_alone(console: ConsoleClient) -> None:
    page = console.get("/runs/flow")

    assert "/runs/flow/node?turn=2&amp;node=count" in page
    assert "node=start" not in page
    assert "has nothing" not in words(console.get("/runs/flow/node?node=answer"))


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("/runs/flow/node?node=start", "cannot be played alone"),
        ("/runs/flow/node?node=gone", "no node is"),
        ("/runs/flow/node", "no node is"),
    ],
)
def test_a_node_that_cannot_be_run_alone(address: str, sentence: str, console: ConsoleClient) -> None:
    assert sentence in words(console.get(address, 400))


def test_a_run_of_a_strategy_has_no_nodes(console: ConsoleClient, tmp_path: Path) -> None:
    with tracing(tmp_path / "run.jsonl"):
        pass
    assert "is not a run of a flow" in words(console.get("/runs/run/node?node=a", 400))
