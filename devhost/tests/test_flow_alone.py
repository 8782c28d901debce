"""One node of a flow that is played alone: which variables it needs, how they are given, what cannot be played so."""

from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.errors import FlowFileError, ParameterError
from devhost.flow.alone import NodeAlone
from devhost.flow.document import FlowFile
from devhost.limits import HostLimits
from devhost.protocol.wire import JsonObject
from devhost.script import Script
from devhost.trace.flow import BEFORE_ONE_NODE
from support.flow_documents import answer, chain, chatflow, llm, node

LIMITS = HostLimits()
FIELDS = [
    {"variable": "topic", "label": "Topic", "type": "paragraph"},
    {"variable": "photo", "label": "Photo", "type": "file"},
    {"variable": "pages", "label": "Pages", "type": "file-list"},
    {"variable": "number", "label": "Number", "type": "number"},
]
BEGIN = node("start", "start", variables=FIELDS)
TEXT = "{{#start.topic#}} {{#start.number#}} {{#sys.query#}} {{#conversation.kept#}} {{#env.key#}} {{#code.rows#}}"
CODE = node("code", "code", title="Count rows", code="", variables=[])
SHOW = node("template-transform", "show", template="", variables=[{"value_selector": ["start", "photo"]}])
LIST = node("list-operator", "list", variable=["start", "pages"])
INSIDE: JsonObject = {**node("llm", "inside"), "parentId": "each"}
INSIDE["data"] |= {"isInIteration": True, "iteration_id": "each", "prompt_template": [{"text": "{{#each.item#}}"}]}
KEPT = {"name": "kept", "value_type": "string", "value": ""}
NODES = [
    BEGIN,
    CODE,
    llm("ask", ("user", TEXT)),
    SHOW,
    LIST,
    node("iteration", "each"),
    INSIDE,
    answer("{{#ask.text#}}"),
]


@pytest.fixture
def file(tmp_path: Path) -> FlowFile:
    path = chatflow(
        tmp_path, NODES, chain("start", "code", "ask", "show", "each", "answer"), conversation_variables=[KEPT]
    )
    return FlowFile.read(path)


def test_its_inputs_are_the_variables_that_it_refers_to(file: FlowFile) -> None:
    ask = NodeAlone.of(file, "Ask")

    assert {name: (each.label, each.kind, each.is_required) for name, each in ask.inputs.items()} == {
        "code.rows": ("Count rows.rows", "json", True),
        "conversation.kept": ("conversation.kept", "text", False),
        "start.number": ("Start.number", "json", True),
        "start.topic": ("Start.topic", "text", True),
        "sys.query": ("sys.query", "text", False),
    }
    assert {name: each.kind for name, each in NodeAlone.of(file, "answer").inputs.items()} == {"ask.text": "text"}
    assert list(NodeAlone.of(file, "inside").inputs) == ["each.item"]


def test_values_are_texts_where_only_a_text_fits_and_else_what_json_says(file: FlowFile, tmp_path: Path) -> None:
    ask = NodeAlone.of(file, "ask")
    given = [
        "start.topic=7",
        "start.number=7",
        'Count rows.rows=["a", {"b": 1}]',
        "sys.query=",
        "conversation.kept=1=1",
    ]

    assert ask.read(given, LIMITS) == {
        "start.topic": "7",
        "start.number": 7,
        "code.rows": ["a", {"b": 1}],
        "sys.query": "",
        "conversation.kept": "1=1",
    }
    picture = tmp_path / "a.png"
    picture.write_bytes(b"png")
    photo = NodeAlone.of(file, "show").read([f"start.photo=@{picture}"], LIMITS)["start.photo"]
    assert photo.path == picture
    pages = NodeAlone.of(file, "list").read([f"start.pages=@{picture}"] * 2, LIMITS)["start.pages"]
    assert [page.path for page in pages] == [picture, picture]


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("answer", [], "node 'Answer' (answer) needs the values of Ask.text: give each with --input SOURCE.NAME=VALUE"),
        (
            "answer",
            ["ask.words=a"],
            "--input ask.words: node 'Answer' (answer) does not refer to it; there are: Ask.text",
        ),
        ("ask", ["env.key=a"], "--input env.key: environment variables have the values of the app"),
        ("answer", ["ask.text"], "--input 'ask.text' is not KEY=VALUE"),
        ("show", ["start.photo=a.png"], "--input Start.photo: it holds files: write Start.photo=@PATH, not 'a.png'"),
    ],
)
def test_what_is_missing_or_wrong_is_named(name: str, given: list[str], sentence: str, file: FlowFile) -> None:
    with pytest.raises(ParameterError) as raised:
        NodeAlone.of(file, name).read(given, LIMITS)
    assert str(raised.value) == sentence


@pytest.mark.parametrize(
    ("name", "why"),
    [("each", "rounds of other nodes"), ("start", "nothing in it to run"), ("gone", "no node is 'gone'")],
)
def test_what_cannot_be_played_alone(name: str, why: str, file: FlowFile) -> None:
    with pytest.raises(FlowFileError, match=why):
        NodeAlone.of(file, name)


def test_its_flow_is_the_same_app_with_that_node_alone(file: FlowFile) -> None:
    alone = NodeAlone.of(file, "inside").file

    assert list(alone.nodes) == [BEFORE_ONE_NODE, "inside"]
    assert alone.nodes["inside"].container is None
    assert not {"isInIteration", "iteration_id"} & alone.nodes["inside"].data.keys()
    assert (alone.alone, alone.path, alone.is_chatflow) == ("inside", file.path, True)
    assert alone.conversation_variables == file.conversation_variables
    assert "ask" in file.nodes, "the whole flow is as before"


def test_the_script_says_what_it_says_for_the_node_in_the_first_turn_that_does(file: FlowFile) -> None:
    turns = [{"text": "Tea"}]
    then = [{"query": "And?", "models": {"Ask": turns}, "expect": {"answer": "x"}, "answers": {"other": "ok"}}]
    script = Script.model_validate({"query": "First", "models": {"inside": turns}, "then": then})

    said = NodeAlone.of(file, "ask").script(script)

    assert (said.query, list(said.models), said.then, said.expect, said.answers) == ("And?", ["Ask"], (), None, {})
    assert NodeAlone.of(file, "answer").script(script).query == "First"


def test_a_conversation_has_no_node_alone(file: FlowFile, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flow", "chat", str(file.path), "--node", "answer"]) == 2
    assert "--node plays one node: leave out chat" in capsys.readouterr().err
