"""Files of a person in a flow: agents, tools and the engine's own nodes get them as in Dify."""

import json
from pathlib import Path

import httpx
import pytest

from devhost.files import LocalFile
from devhost.flow.turn import FlowTurn
from devhost.host.host import Host
from devhost.limits import HostLimits
from support.flow_documents import START, answer, chain, chatflow, end, node, tool, variable, workflow
from tests.flows.playing import Played

FILE_FIELDS = [
    {"variable": "thing", "label": "Thing", "type": "file", "required": True, "allowed_file_types": ["document"]},
    {"variable": "others", "label": "Others", "type": "file-list", "required": False, "allowed_file_types": []},
]


@pytest.fixture
def notes(tmp_path: Path) -> LocalFile:
    path = tmp_path / "notes.txt"
    path.write_text("Buy tea.", encoding="utf-8")
    return LocalFile.read(path, HostLimits())


@pytest.fixture
def picture(tmp_path: Path) -> LocalFile:
    path = tmp_path / "cat.png"
    path.write_bytes(b"\x89PNG")
    return LocalFile.read(path, HostLimits())


def weigh(folder: Path) -> Path:
    """A workflow whose tool takes the files of the Start node's form."""
    weigh = tool("oddments", "weigh", thing=variable("start.thing"), others=variable("start.others"))
    nodes = [node("start", "start", variables=FILE_FIELDS), weigh, end(weight="weigh.weight", label="weigh.label")]
    return workflow(folder, nodes, chain("start", "weigh", "end"))


def test_an_agent_gets_the_files_of_the_question_as_dify_sends_them(
    tmp_path: Path, puppet: Host, notes: LocalFile
) -> None:
    steps: list[dict[str, object]] = [{"show_parameters": None}, {"say": "{{#sys.files#}}"}]
    parameters = {
        "model": {"type": "constant", "value": {"provider": "p", "model": "m"}},
        "query": {"type": "constant", "value": json.dumps(steps)},
        "files": {"type": "variable", "value": ["sys", "files"]},
    }
    agent = node("agent", "agent", agent_strategy_name="puppet", agent_parameters=parameters)
    file = chatflow(tmp_path, [START, agent, answer("x")], chain("start", "agent", "answer"))

    played = Played.of(file, FlowTurn("hey", files=[notes]), puppet, {"agent": [{"text": "."}]})

    (sent,) = played.node("agent").outputs["parameters"]["files"]
    assert sent == notes.described(sent["url"])
    assert httpx.get(sent["url"]).text == "Buy tea."
    assert played.node("agent").outputs["text"] == ""


def test_a_tool_gets_the_files_of_the_form(tmp_path: Path, puppet: Host, notes: LocalFile, picture: LocalFile) -> None:
    turn = FlowTurn(inputs={"thing": notes, "others": [picture]})

    played = Played.of(weigh(tmp_path), turn, puppet, {})

    assert played.end.outputs == {"weight": 12, "label": "document .txt image .png"}
    shown = played.node("start").outputs["thing"]
    assert (shown["filename"], shown["transfer_method"], shown["url"]) == (
        "notes.txt",
        "local_file",
        notes.path.as_uri(),
    )


def test_the_engines_nodes_list_files_read_documents_and_link_them(
    tmp_path: Path, puppet: Host, notes: LocalFile, picture: LocalFile
) -> None:
    documents = node(
        "list-operator",
        "documents",
        variable=["sys", "files"],
        filter_by={
            "enabled": True,
            "conditions": [{"key": "type", "comparison_operator": "in", "value": ["document"]}],
        },
        order_by={"enabled": False, "key": "", "value": "asc"},
        limit={"enabled": False, "size": 10},
        extract_by={"enabled": False, "serial": "1"},
    )
    read = node("document-extractor", "read", variable_selector=["documents", "result"], is_array_file=True)
    nodes = [START, documents, read, answer("{{#read.text#}} {{#documents.first_record#}}")]
    file = chatflow(tmp_path, nodes, chain("start", "documents", "read", "answer"))

    played = Played.of(file, FlowTurn("hey", files=[picture, notes]), puppet, {})

    assert played.node("read").outputs == {"text": ["Buy tea."]}
    assert played.end.outputs["answer"] == f"- Buy tea. [notes.txt]({notes.path.as_uri()})"
    assert [each["filename"] for each in played.end.outputs["files"]] == ["notes.txt"]


def test_the_files_of_an_agent_are_files_of_the_flow_that_a_tool_can_take(tmp_path: Path, puppet: Host) -> None:
    draw = {"provider": "devhost-tests/toolbox/toolbox", "tool_name": "draw", "parameters": {"size": 3}}
    parameters = {
        "model": {"type": "constant", "value": {"provider": "p", "model": "m"}},
        "query": {"type": "constant", "value": json.dumps([{"call": draw}])},
    }
    agent = node("agent", "agent", agent_strategy_name="puppet", agent_parameters=parameters)
    weigh = tool("oddments", "weigh", thing=variable("agent.files"))
    nodes = [START, agent, weigh, answer("{{#agent.files#}} weighs {{#weigh.weight#}}")]
    file = chatflow(tmp_path, nodes, chain("start", "agent", "weigh", "answer"))

    played = Played.of(file, FlowTurn("hey"), puppet, {"agent": [{"text": "."}]})

    (made,) = played.node("agent").outputs["files"]
    assert played.end.outputs["answer"] == f"![picture.png]({made['url']}) weighs 3"
    assert made["url"].startswith("file:///")
