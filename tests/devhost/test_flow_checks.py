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
from devhost.flow.document import FlowFile, filled_inputs, start_fields, typed_inputs, with_read_files
from devhost.flow.outside import Allowed
from devhost.limits import HostLimits
from devhost.plugin.declaration import PluginDeclaration
from support.flow_documents import START, chain, chatflow, mixed, tool
from support.plugins import TOOLBOX
from tests.devhost import ROOT

APPROVAL = ROOT / "examples" / "workflows" / "approval.yml"
FIELDS = [
    {"variable": "topic", "type": "text-input", "label": "Topic", "required": True},
    {"variable": "count", "type": "number", "label": "Count", "required": False},
    {"variable": "size", "type": "select", "label": "Size", "options": ["s", "m"], "default": "m"},
    {"variable": "sure", "type": "checkbox", "label": "Sure", "required": False},
    {"variable": "more", "type": "json_object", "label": "More", "required": False},
]

type Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def plugin() -> PluginDeclaration:
    return PluginDeclaration.read(ROOT)


@pytest.fixture(scope="module")
def tools() -> list[PluginDeclaration]:
    """Those of all examples."""
    return [PluginDeclaration.read(manifest.parent) for manifest in sorted(ROOT.glob("examples/*/manifest.yaml"))]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Change], FlowFile]:
    """Writes the approval chatflow with one change."""
    approval = yaml.safe_load(APPROVAL.read_text(encoding="utf-8"))

    def written(change: Change) -> FlowFile:
        document = copy.deepcopy(approval)
        change(document)
        file = tmp_path / "flow.yml"
        file.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
        return FlowFile.read(file)

    return written


def node(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in document["workflow"]["graph"]["nodes"] if each["id"] == name)
    return found


def data(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = node(document, name)["data"]
    return found


def edges(document: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document["workflow"]["graph"]["edges"]
    return found


def as_workflow(document: dict[str, Any]) -> None:
    document["app"]["mode"] = "workflow"


MISTAKES: dict[str, tuple[Change, str]] = {
    "a type that devhost does not play": (
        lambda d: data(d, "save").update(type="trigger-webhook"),
        "node 'Keep the state' (save) is of the type 'trigger-webhook', which devhost does not play; devhost plays: ",
    ),
    "no Start node": (
        lambda d: data(d, "start").update(type="answer"),
        "a flow needs exactly one Start node, and this one has: none",
    ),
    "a node that is not there": (
        lambda d: data(d, "answer").update(answer="{{#agnt.text#}}"),
        "node 'Answer' (answer) refers to agnt.text: agnt has no 'text'; there are: none",
    ),
    "an output that the agent does not have": (
        lambda d: data(d, "answer").update(answer="{{#agent.txt#}}"),
        "node 'Answer' (answer) refers to agent.txt: node 'Agent' (agent) has no 'txt'; there are: ",
    ),
    "a field that the Start node does not have": (
        lambda d: data(d, "answer").update(answer="{{#start.topic#}}"),
        "node 'Answer' (answer) refers to start.topic: node 'Start' (start) has no 'topic'; there are: none",
    ),
    "a conversation variable that is not declared": (
        lambda d: data(d, "save")["items"][0].update(variable_selector=["conversation", "stat"]),
        "node 'Keep the state' (save) refers to conversation.stat: conversation has no 'stat'; there are: state",
    ),
    "an environment variable that is not declared": (
        lambda d: data(d, "answer").update(answer="{{#env.key#}}"),
        "node 'Answer' (answer) refers to env.key: env has no 'key'; there are: none",
    ),
    "a system variable that a workflow does not have": (
        as_workflow,
        "node 'Agent' (agent) refers to sys.query: sys has no 'query'; there are: app_id, files, timestamp, ",
    ),
    "a strategy that is not there": (
        lambda d: data(d, "agent").update(agent_strategy_name="function_calling"),
        (
            "node 'Agent' (agent) asks for the strategy 'function_calling' of gpt5-agents/gpt5_agent/gpt5_agent; "
            f"gpt5_agent in {ROOT} has: gpt5_function_calling, gpt5_react, gpt5_plan_and_reflect. "
            "Choose one of them, or give the other plugin with --plugin DIR"
        ),
    ),
    "no strategy": (
        lambda d: data(d, "agent").pop("agent_strategy_name"),
        "node 'Agent' (agent) has no agent_strategy_name: choose a strategy in the node",
    ),
    "a parameter that the strategy does not have": (
        lambda d: data(d, "agent")["agent_parameters"].update(mood={"type": "constant", "value": "good"}),
        "node 'Agent' (agent) sets the parameter 'mood', which gpt5_function_calling does not have; it has: model, ",
    ),
    "a parameter that is missing": (
        lambda d: data(d, "agent")["agent_parameters"].pop("query"),
        "node 'Agent' (agent) does not set the parameter 'query', which gpt5_function_calling needs",
    ),
    "no parameters": (
        lambda d: data(d, "agent").pop("agent_parameters"),
        "node 'Agent' (agent) has no agent_parameters: fill in the node",
    ),
}


@pytest.mark.parametrize(("change", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_with_the_node_and_what_would_be_right(
    write: Callable[[Change], FlowFile],
    plugin: PluginDeclaration,
    tools: list[PluginDeclaration],
    change: Change,
    sentence: str,
) -> None:
    file = write(change)

    with pytest.raises(FlowFileError) as refused:
        check_flow(file, {}, plugin, tools)

    lines = str(refused.value).splitlines()
    assert lines[0] == f"{file.path} cannot be played:"
    assert any(line.startswith(f"  {sentence}") for line in lines[1:]), lines


def test_every_mistake_is_told_at_once(
    write: Callable[[Change], FlowFile], plugin: PluginDeclaration, tools: list[PluginDeclaration]
) -> None:
    def change(document: dict[str, Any]) -> None:
        data(document, "answer")["answer"] = "{{#a.text#}} {{#b.text#}}"

    with pytest.raises(FlowFileError) as refused:
        check_flow(write(change), {}, plugin, tools)

    assert len(str(refused.value).splitlines()) == 3


@pytest.mark.parametrize(
    "file", sorted(ROOT.glob("examples/*/*.yml")), ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_the_flows_of_the_examples_are_right(
    file: Path, plugin: PluginDeclaration, tools: list[PluginDeclaration]
) -> None:
    flow = FlowFile.read(file)

    inputs = dict.fromkeys(start_fields(flow), "anything")
    assert check_flow(flow, inputs, plugin, tools, Allowed(code=True)) == ()


def no_schema(document: dict[str, Any]) -> None:
    """As after choosing the strategy in the panel."""
    data(document, "agent")["output_schema"] = {}
    data(document, "answer")["answer"] = "{{#agent.text#}} {{#agent.stop_reason#}} {{#agent.pending_calls#}}"


EDITOR = "Dify's editor does not publish this app:"
NOT_NAMED = (
    "the output_schema of node 'Agent' (agent) in this file does not have it; begin with an app that has it, or read "
    "it from json in a Code node)"
)


def invalid(output: str) -> str:
    return f"{EDITOR} [Answer] Invalid variable. Please select an existing variable. (agent.{output}: {NOT_NAMED}"


def missing(*plugins: str) -> str:
    return (
        f"dependencies does not name {', '.join(plugins)}: when Dify imports the app, it does not offer a plugin that "
        "is not installed. (Dify's own export leaves out the plugins of Agent nodes)"
    )


NOTICES: dict[str, tuple[Change, list[str]]] = {
    "outputs that the node's data do not name": (no_schema, [invalid("pending_calls"), invalid("stop_reason")]),
    "no dependencies": (
        lambda d: d.update(dependencies=[]),
        [missing("gpt5-agents/gpt5_agent", "gpt5-agents/harbour_hall_office")],
    ),
    "dependencies without the tools' plugin": (
        lambda d: d["dependencies"].pop(),
        [missing("gpt5-agents/harbour_hall_office")],
    ),
}


@pytest.mark.parametrize(("change", "notices"), NOTICES.values(), ids=NOTICES)
def test_what_can_be_played_all_the_same_is_a_notice(
    write: Callable[[Change], FlowFile],
    plugin: PluginDeclaration,
    tools: list[PluginDeclaration],
    change: Change,
    notices: list[str],
) -> None:
    assert list(check_flow(write(change), {}, plugin, tools)) == notices


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d, "chatflow with 6 nodes: Dify's editor publishes it"),
        (no_schema, invalid("stop_reason")),
        (lambda d: data(d, "answer").update(answer="{{#agnt.text#}}"), "agnt has no 'text'"),
    ],
    ids=["published", "not published", "not played"],
)
def test_an_app_is_checked_by_itself(
    write: Callable[[Change], FlowFile],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    change: Change,
    sentence: str,
) -> None:
    monkeypatch.chdir(ROOT)

    assert main(["check", str(write(change).path)]) == int("publishes" not in sentence)
    assert sentence in capsys.readouterr().out


def test_a_tool_node_sets_only_parameters_of_its_tool(tmp_path: Path) -> None:
    repeat = tool("toolbox", "repeat", word=mixed("a"), wrod=mixed("b"))
    file = FlowFile.read(chatflow(tmp_path, [START, repeat], chain("start", "repeat")))

    with pytest.raises(FlowFileError, match="sets the parameter 'wrod', which repeat does not have; it has: word"):
        check_flow(file, {}, None, [PluginDeclaration.read(TOOLBOX)])


def test_notes_on_the_canvas_are_no_nodes(
    write: Callable[[Change], FlowFile], plugin: PluginDeclaration, tools: list[PluginDeclaration]
) -> None:
    note = {"id": "n1", "type": "custom-note", "data": {"type": "", "text": "{{#nothing.here#}}"}}
    file = write(lambda d: d["workflow"]["graph"]["nodes"].append(note))

    assert "n1" not in file.nodes
    assert check_flow(file, {}, plugin, tools) == ()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- 1", "must contain keys and values"),
        ("a: [", "is not valid YAML"),
        ("kind: app", "app: Field required"),
        ("kind: rag_pipeline\napp: {mode: workflow}\nworkflow: {graph: {nodes: []}}", "kind: Input should be 'app'"),
        ("kind: app\napp: {mode: chat}\nworkflow: {graph: {nodes: []}}", "app.mode: Input should be 'workflow' or"),
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
def form(write: Callable[[Change], FlowFile]) -> FlowFile:
    return write(lambda document: data(document, "start").update(variables=FIELDS))


@pytest.mark.parametrize(
    ("assignments", "sentence"),
    [
        ((), "the Start node needs the field 'topic' (text-input): give it with --input topic=VALUE"),
        (("topic=x", "count=two"), "--input count: 'two' must be a number"),
        (("topic=x", "count=true"), "--input count: True must be a number"),
        (("topic=x", "size=l"), "--input size: 'l' is not one of the options: s, m"),
        (("topic=x", "sure=1"), "--input sure: 1 must be true or false"),
        (("topic=x", "more=[1]"), "--input more: [1] must be a JSON object"),
        (("topic=x", "tpic=y"), "--input tpic: the Start node has no such field; it has: topic, count, size"),
    ],
)
def test_the_fields_of_the_start_node_are_checked(form: FlowFile, assignments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(FlowFileError) as refused:
        check_flow(form, typed_inputs(form, assignments), None)

    assert sentence in str(refused.value)


def test_a_text_field_holds_what_is_typed_and_others_hold_json(form: FlowFile) -> None:
    inputs = typed_inputs(form, ("topic=12", "count=12", "sure=true", 'more={"a": 1}'))

    check_flow(form, inputs, None)
    assert filled_inputs(form, inputs) == {"topic": "12", "count": 12, "size": "m", "sure": True, "more": {"a": 1}}


@pytest.fixture
def file_form(write: Callable[[Change], FlowFile], tmp_path: Path) -> FlowFile:
    for name in ("notes.txt", "cat.png"):
        (tmp_path / name).write_bytes(b"x")
    one = {"variable": "one", "type": "file", "label": "One", "required": True}
    many = {"variable": "many", "type": "file-list", "label": "Many", "required": False}
    return write(lambda document: data(document, "start").update(variables=[one, many]))


@pytest.mark.parametrize(
    ("assignments", "sentence"),
    [
        ((), "the Start node needs the field 'one' (file): give it with --input one=@PATH"),
        (("one=notes.txt",), "--input one: the field holds files: write one=@PATH, not 'notes.txt'"),
        (("one=@gone.txt",), "cannot be read: No such file"),
    ],
)
def test_the_files_of_a_form_are_read_and_checked(
    file_form: FlowFile, tmp_path: Path, assignments: tuple[str, ...], sentence: str
) -> None:
    def check() -> None:
        inputs = with_read_files(file_form, typed_inputs(file_form, assignments), tmp_path, HostLimits())
        check_flow(file_form, inputs, None)

    with pytest.raises((FlowFileError, ParameterError)) as refused:
        check()

    assert sentence in str(refused.value)


def test_a_field_for_one_file_has_a_file_and_one_for_several_has_a_list(file_form: FlowFile, tmp_path: Path) -> None:
    typed = typed_inputs(file_form, ("one=@notes.txt", "many=@cat.png"))

    inputs = with_read_files(file_form, typed, tmp_path, HostLimits())

    assert str(inputs["one"]) == "notes.txt"
    assert [str(file) for file in inputs["many"]] == ["cat.png"]
    check_flow(file_form, inputs, None)
