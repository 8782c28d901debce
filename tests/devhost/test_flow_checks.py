"""A flow that cannot be played is refused before anything starts, in sentences that name the node."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost.cli.commands import main
from devhost.errors import FlowFileError, ParameterError
from devhost.flow.checks import check_flow
from devhost.flow.document import FlowFile, filled_inputs, typed_inputs, with_read_files, wrong_inputs
from devhost.limits import HostLimits
from devhost.plugin.declaration import PluginDeclaration
from support.flow_documents import START, chain, chatflow, mixed, node, tool
from support.plugins import TOOLBOX
from tests.devhost import ROOT

APPROVAL = yaml.safe_load((ROOT / "examples" / "workflows" / "approval.yml").read_text(encoding="utf-8"))
PLUGIN = PluginDeclaration.read(ROOT)
TOOLS = [PluginDeclaration.read(manifest.parent) for manifest in sorted(ROOT.glob("examples/*/manifest.yaml"))]

type Change = Callable[[dict[str, Any]], object]


def changed(folder: Path, change: Change) -> FlowFile:
    """The approval chatflow with one change."""
    document = copy.deepcopy(APPROVAL)
    change(document)
    file = folder / "flow.yml"
    file.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    return FlowFile.read(file)


def data(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in document["workflow"]["graph"]["nodes"] if each["id"] == name)["data"]
    return found


def answering(text: str) -> Change:
    return lambda document: data(document, "answer").update(answer=text)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda d: data(d, "save").update(type="trigger-webhook"),
            "node 'Keep the state' (save) is of the type 'trigger-webhook', which devhost does not play",
        ),
        (
            lambda d: data(d, "start").update(type="answer"),
            "a flow needs exactly one Start node, and this one has: none",
        ),
        (
            lambda d: d["workflow"]["graph"]["edges"][0].update(target="agnt"),
            "an edge names the node 'agnt'; there are: start, agent, save, answer, clear",
        ),
        (
            answering("{{#agnt.text#}}"),
            "node 'Answer' (answer) refers to agnt.text: agnt has no 'text'; there are: none",
        ),
        (answering("{{#agent.txt#}}"), "refers to agent.txt: node 'Agent' (agent) has no 'txt'; there are: "),
        (answering("{{#start.topic#}}"), "refers to start.topic: node 'Start' (start) has no 'topic'; there are: none"),
        (answering("{{#env.key#}}"), "refers to env.key: env has no 'key'; there are: none"),
        (
            lambda d: data(d, "save")["items"][0].update(variable_selector=["conversation", "stat"]),
            "refers to conversation.stat: conversation has no 'stat'; there are: state",
        ),
        (
            lambda d: data(d, "save")["items"][0].update(variable_selector=["start", "sys.qury"]),
            "refers to start.sys.qury: sys has no 'qury'; there are: ",
        ),
        (
            lambda d: d["app"].update(mode="workflow"),
            "node 'Agent' (agent) refers to sys.query: sys has no 'query'; there are: app_id, files, timestamp, ",
        ),
        (
            lambda d: data(d, "agent").update(agent_strategy_name="function_calling"),
            (
                f"node 'Agent' (agent) asks for the strategy 'function_calling'; gpt5_agent in {ROOT} has: "
                "gpt5_function_calling, gpt5_react, gpt5_plan_and_reflect. Choose one of them, or give the other "
                "plugin with --plugin DIR"
            ),
        ),
        (
            lambda d: data(d, "agent")["agent_parameters"].update(mood={"type": "constant", "value": "good"}),
            "sets the parameter 'mood', which gpt5_function_calling does not have; it has: model, ",
        ),
        (
            lambda d: data(d, "agent")["agent_parameters"].pop("query"),
            "node 'Agent' (agent) does not set the parameter 'query', which gpt5_function_calling needs",
        ),
    ],
)
def test_a_mistake_is_told_with_the_node_and_what_would_be_right(tmp_path: Path, change: Change, sentence: str) -> None:
    file = changed(tmp_path, change)

    with pytest.raises(FlowFileError) as refused:
        check_flow(file, {}, PLUGIN, TOOLS)

    assert str(refused.value).startswith(f"{file.path} cannot be played:\n  ")
    assert sentence in str(refused.value)


def no_schema(document: dict[str, Any]) -> None:
    """As after choosing the strategy in the panel."""
    data(document, "agent")["output_schema"] = {}
    data(document, "answer")["answer"] = "{{#agent.text#}} {{#agent.stop_reason#}}"


INVALID = (
    "Dify's editor does not publish this app: [Answer] Invalid variable. Please select an existing variable. "
    "(agent.stop_reason: the output_schema of node 'Agent' (agent) in this file does not have it; begin with an app "
    "that has it, or read it from json in a Code node)"
)


@pytest.mark.parametrize(
    ("change", "notice"),
    [
        (no_schema, INVALID),
        (
            lambda d: d.update(dependencies=[]),
            "dependencies does not name gpt5-agents/gpt5_agent, gpt5-agents/harbour_hall_office: when Dify imports",
        ),
        (lambda d: d["dependencies"].pop(), "dependencies does not name gpt5-agents/harbour_hall_office: when Dify"),
    ],
)
def test_what_can_be_played_all_the_same_is_a_notice(tmp_path: Path, change: Change, notice: str) -> None:
    (told,) = check_flow(changed(tmp_path, change), {}, PLUGIN, TOOLS)

    assert told.startswith(notice)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d, "chatflow with 6 nodes: Dify's editor publishes it"),
        (no_schema, INVALID),
        (answering("{{#agnt.text#}}"), "agnt has no 'text'"),
    ],
    ids=["published", "not published", "not played"],
)
def test_an_app_is_checked_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, change: Change, sentence: str
) -> None:
    monkeypatch.chdir(ROOT)

    assert main(["check", str(changed(tmp_path, change).path)]) == int("publishes" not in sentence)
    assert sentence in capsys.readouterr().out


def test_a_tool_node_sets_only_parameters_of_its_tool(tmp_path: Path) -> None:
    repeat = tool("toolbox", "repeat", word=mixed("a"), wrod=mixed("b"))
    file = FlowFile.read(chatflow(tmp_path, [START, repeat], chain("start", "repeat")))

    with pytest.raises(FlowFileError, match="sets the parameter 'wrod', which repeat does not have; it has: word"):
        check_flow(file, {}, None, [PluginDeclaration.read(TOOLBOX)])


def test_notes_on_the_canvas_are_no_nodes(tmp_path: Path) -> None:
    note = {"id": "n1", "type": "custom-note", "data": {"type": "", "text": "{{#nothing.here#}}"}}

    assert "n1" not in changed(tmp_path, lambda d: d["workflow"]["graph"]["nodes"].append(note)).nodes


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [", "is not valid YAML"),
        ("kind: app", "app.mode: Field required"),
        ("kind: rag_pipeline\napp: {mode: workflow}\nworkflow: {graph: {nodes: []}}", "kind: Input should be 'app'"),
        (
            "kind: app\napp: {mode: workflow}\nworkflow: {graph: {nodes: [{id: a, data: {}}, {id: a, data: {}}]}}",
            "has several nodes with the id a: each needs an id of its own",
        ),
    ],
)
def test_a_file_that_is_no_flow_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "flow.yml"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(FlowFileError, match=r"flow\.yml") as refused:
        FlowFile.read(file)

    assert sentence in str(refused.value)


@pytest.fixture
def form(tmp_path: Path) -> FlowFile:
    fields = [
        {"variable": "topic", "type": "text-input", "required": True},
        {"variable": "count", "type": "number"},
        {"variable": "size", "type": "select", "options": ["s", "m"], "default": "m"},
        {"variable": "sure", "type": "checkbox"},
        {"variable": "one", "type": "file"},
        {"variable": "many", "type": "file-list"},
    ]
    (tmp_path / "notes.txt").write_text("x")
    return FlowFile.read(chatflow(tmp_path, [node("start", "start", variables=fields)], []))


@pytest.mark.parametrize(
    ("assignments", "sentence"),
    [
        ((), "the Start node needs the field 'topic' (text-input): give it with --input topic=VALUE"),
        (("topic=x", "size=l"), "--input size: 'l' is not one of the options: s, m"),
        (("topic=x", "tpic=y"), "--input tpic: the Start node has no such field; it has: topic, count, size"),
        (("topic=x", "one=notes.txt"), "--input one: the field holds files: write one=@PATH, not 'notes.txt'"),
        (("topic=x", "one=@gone.txt"), "cannot be read: No such file"),
    ],
)
def test_the_fields_of_the_start_node_are_checked(form: FlowFile, assignments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises((FlowFileError, ParameterError)) as refused:
        check_flow(form, with_read_files(form, typed_inputs(form, assignments), HostLimits()), None)

    assert sentence in str(refused.value)


def test_a_text_field_holds_what_is_typed_and_others_hold_json_or_files(
    form: FlowFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    typed = typed_inputs(form, ("topic=12", "count=12", "sure=true", "one=@notes.txt", "many=@notes.txt"))
    inputs = filled_inputs(form, with_read_files(form, typed, HostLimits()))

    assert not list(wrong_inputs(form, inputs))
    one, many = inputs.pop("one"), inputs.pop("many")
    assert inputs == {"topic": "12", "count": 12, "size": "m", "sure": True}
    assert [one.path.name, *(file.path.name for file in many)] == ["notes.txt"] * 2
