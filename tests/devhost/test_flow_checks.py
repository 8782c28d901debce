"""A flow that cannot be played is refused before anything starts, in sentences that name the node."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost.cli.commands import main
from devhost.errors import FlowFileError, ParameterError
from devhost.flow import checks
from devhost.flow.checks import check_flow, judged
from devhost.flow.document import FlowFile, filled_inputs, typed_inputs, with_read_files, wrong_inputs
from devhost.flow.tools import meant_strategy
from devhost.limits import HostLimits
from devhost.plugin.declaration import PluginDeclaration
from support.flow_documents import START, chain, chatflow, end, mixed, node, start, tool, workflow
from support.plugins import PUPPET, TOOLBOX
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
            "an edge names the node 'agnt' (did you mean 'agent'?); there are: start, agent, save, answer, clear",
        ),
        (
            answering("{{#agnt.text#}}"),
            (
                "node 'Answer' (answer) refers to agnt.text: there is no node 'agnt' (did you mean 'agent'?); there "
                "are: start, agent, save, answer, clear"
            ),
        ),
        (answering("{{#agent.txt#}}"), "refers to agent.txt: node 'Agent' (agent) has no 'txt'; there are: "),
        (answering("{{#start.topic#}}"), "refers to start.topic: node 'Start' (start) has no 'topic'; there are: none"),
        (
            lambda d: data(d, "save")["items"][0].update(variable_selector=["conversation", "stat"]),
            "refers to conversation.stat: conversation has no 'stat'; there are: state",
        ),
        (
            lambda d: data(d, "save")["items"][0].update(variable_selector=["start", "sys.qury"]),
            "refers to start.sys.qury: sys has no 'qury'; there are: ",
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
            lambda d: data(d, "agent")["agent_parameters"].pop("query"),
            "node 'Agent' (agent) does not set the parameter 'query', which gpt5_function_calling needs",
        ),
    ],
)
def test_a_mistake_is_told_with_the_node_and_what_would_be_right(tmp_path: Path, change: Change, sentence: str) -> None:
    file = changed(tmp_path, change)

    with pytest.raises(FlowFileError) as refused:
        check_flow(file, {}, [PLUGIN], TOOLS)

    assert str(refused.value).startswith(f"{file.path} cannot be played:\n  ")
    assert sentence in str(refused.value)


def no_schema(document: dict[str, Any]) -> None:
    """As after choosing the strategy in the panel."""
    data(document, "agent")["output_schema"] = {}
    data(document, "answer")["answer"] = "{{#agent.text#}} {{#agent.stop_reason#}}"


INVALID = (
    "[Answer] Invalid variable. Please select an existing variable. "
    "(agent.stop_reason: the output_schema of node 'Agent' (agent) in this file does not have it; begin with an app "
    "that has it, or read it from json in a Code node)"
)


@pytest.mark.parametrize(
    ("change", "notice"),
    [
        (no_schema, f"Dify's editor does not publish this app: {INVALID}"),
        (
            answering("{{#env.key#}}"),
            "node 'Answer' (answer) refers to env.key: env has no 'key'; there are: none. Dify plays it and leaves",
        ),
        (
            lambda d: data(d, "agent")["agent_parameters"]["query"].update(value="{{#sys.qury#}}"),
            "node 'Agent' (agent) refers to sys.qury: sys has no 'qury'; there are: app_id, conversation_id, ",
        ),
        (
            lambda d: data(d, "agent")["agent_parameters"].update(mood={"type": "constant", "value": "good"}),
            (
                "node 'Agent' (agent) sets the parameter 'mood' (did you mean 'model'?), which gpt5_function_calling "
                "does not have: Dify plays it all the same; it has: model, "
            ),
        ),
        (
            lambda d: d["workflow"]["graph"]["edges"][0].update(sourceHandle="sorce"),
            (
                "an edge leaves node 'Start' (start) at 'sorce' (did you mean 'source'?), which it does not have: the "
                "engine goes there all the same; there are: source"
            ),
        ),
        (
            lambda d: d.update(dependencies=[]),
            "dependencies does not name gpt5-agents/gpt5_agent, gpt5-agents/harbour_hall_office: when Dify imports",
        ),
        (lambda d: d["dependencies"].pop(), "dependencies does not name gpt5-agents/harbour_hall_office: when Dify"),
    ],
)
def test_what_can_be_played_all_the_same_is_a_notice(tmp_path: Path, change: Change, notice: str) -> None:
    (told,) = check_flow(changed(tmp_path, change), {}, [PLUGIN], TOOLS)

    assert told.startswith(notice)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d, "chatflow with 6 nodes: nothing was found that Dify's editor or engine refuses"),
        (no_schema, f"Dify's editor does not publish this app:\n  {INVALID}"),
        (answering("{{#agnt.text#}}"), "Dify's editor does not publish this app:\n  node 'Answer' (answer) refers to"),
    ],
    ids=["published", "not published", "not played"],
)
def test_an_app_is_checked_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, change: Change, sentence: str
) -> None:
    monkeypatch.chdir(ROOT)

    assert main(["check", str(changed(tmp_path, change).path)]) == int("nothing was found" not in sentence)
    assert sentence in capsys.readouterr().out


def asking(provider: str, strategy: str = "gpt5_react", **values: object) -> Change:
    def change(document: dict[str, Any]) -> None:
        data(document, "agent").update(agent_strategy_provider_name=provider, agent_strategy_name=strategy)
        data(document, "agent")["agent_parameters"].update(values)

    return change


OF_ITS_OWN = "node 'Agent' (agent) asks for the strategy 'function_calling' of langgenius/agent/agent: give the folder"
STANDS_IN = "node 'Agent' (agent) asks for gpt5_react of else/else/else: gpt5_react of gpt5_agent stands in. Give the"


def test_the_provider_of_an_agent_is_looked_at_before_its_strategy(tmp_path: Path) -> None:
    change = asking("langgenius/agent/agent", "function_calling", mcp_server={"type": "constant", "value": "{}"})

    with pytest.raises(FlowFileError) as refused:
        check_flow(changed(tmp_path, change), {}, [PLUGIN], TOOLS)

    assert OF_ITS_OWN in str(refused.value)
    assert "mcp_server" not in str(refused.value)


def test_a_notice_names_a_strategy_that_stands_in(tmp_path: Path) -> None:
    change = asking("else/else/else", mcp_server={"type": "constant", "value": "{}"})

    notices = check_flow(changed(tmp_path, change), {}, [PLUGIN], TOOLS)

    assert any(told.startswith(STANDS_IN) for told in notices)
    assert not any("mcp_server" in told for told in notices)


@pytest.mark.parametrize("author", ["gpt5-agents", "fork"])
def test_a_fork_of_the_plugin_is_no_stand_in(tmp_path: Path, author: str) -> None:
    notices = check_flow(changed(tmp_path, asking(f"{author}/gpt5_agent/gpt5_agent")), {}, [PLUGIN], TOOLS)

    assert not any("stands in" in told for told in notices)


def test_a_strategy_is_found_among_several_plugins(tmp_path: Path) -> None:
    file = changed(tmp_path, asking("devhost-tests/puppet/puppet", "puppet"))
    puppet = PluginDeclaration.read(PUPPET)

    meant = meant_strategy(file.nodes["agent"], [PLUGIN, puppet])

    assert meant is not None
    assert (meant.plugin, meant.is_own) == (puppet, True)


def test_a_wrong_type_of_an_agents_tool_is_told(tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        data(document, "agent")["agent_parameters"]["tools"]["value"][0]["type"] = "builtn"

    with pytest.raises(
        FlowFileError, match=r"node 'Agent' \(agent\) has a tool \w+ of the type 'builtn' \(did you mean"
    ):
        check_flow(changed(tmp_path, change), {}, [PLUGIN], TOOLS)


def test_an_unknown_parameter_of_an_agents_tool_is_a_notice(tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        tool_entry = data(document, "agent")["agent_parameters"]["tools"]["value"][0]
        tool_entry["parameters"] = {"wrod": {"auto": 0, "value": "x"}}

    notices = check_flow(changed(tmp_path, change), {}, [PLUGIN], TOOLS)

    assert any("node 'Agent' (agent) sets the parameter 'wrod'" in told for told in notices)


def test_a_deleted_source_of_a_variable_aggregator_is_a_notice(tmp_path: Path) -> None:
    """The engine takes the next source, and the editor does not publish the app."""
    gather = node("variable-aggregator", "gather", output_type="string", variables=[["gone", "text"], ["sys", "query"]])
    nodes = [START, gather, node("answer", "answer", answer="{{#gather.output#}}")]
    file = FlowFile.read(chatflow(tmp_path, nodes, chain("start", "gather", "answer")))

    (told,) = check_flow(file, {}, ())
    assert told == (
        "Dify's editor does not publish this app: node 'Gather' (gather) refers to gone.text: there is no node 'gone'; "
        "there are: start, gather, answer"
    )


@pytest.mark.parametrize(
    ("nodes", "edges", "sentence"),
    [
        ([START, node("answer", "answer", answer="x")], [], "[Answer] This step is not connected to anything (Start"),
        ([START], [], "The Answer node must be added"),
    ],
)
def test_what_the_editor_misses_is_a_notice_of_a_flow(
    tmp_path: Path, nodes: list[dict[str, Any]], edges: list[tuple[str, str]], sentence: str
) -> None:
    (told,) = check_flow(FlowFile.read(chatflow(tmp_path, nodes, edges)), {}, ())

    assert told.startswith(f"Dify's editor does not publish this app: {sentence}")


def test_outputs_of_one_name_are_not_published(tmp_path: Path) -> None:
    nodes = [start("a"), end("one", result="start.a"), end("two", result="start.a")]
    file = FlowFile.read(workflow(tmp_path, nodes, [("start", "one"), ("start", "two")]))

    (told,) = (each.sentence for each in judged(file, ()) if each.by == "editor")
    assert told == (
        'Duplicate Output node variable "result". Output node variable names must be unique. '
        "(node 'One' (one), node 'Two' (two))"
    )


ENDS = [start("a"), node("answer", "said", answer="x"), end("put_out", said="start.a")]


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (
            workflow,
            "a workflow has no nodes of the type 'answer', as node 'Said' (said) is, and difyctl does not import",
        ),
        (chatflow, "a chatflow has no nodes of the type 'end', as node 'Put_out' (put_out) is, and difyctl does not"),
    ],
    ids=["a workflow", "a chatflow"],
)
def test_a_node_that_only_the_other_kind_of_app_has_is_not_published(
    tmp_path: Path, written: Callable[..., Path], sentence: str
) -> None:
    file = FlowFile.read(written(tmp_path, ENDS, [("start", "said"), ("start", "put_out")]))

    (told,) = (each.sentence for each in judged(file, ()) if each.by == "editor")
    assert told.startswith(sentence)


def test_an_engine_that_is_not_installed_was_not_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "asked_engine", lambda _file: None)
    nodes = [START, node("answer", "answer", answer="x")]

    assert main(["check", str(chatflow(tmp_path, nodes, chain("start", "answer")))]) == 0
    assert "Dify's engine was not asked: it is not installed here" in capsys.readouterr().out


def test_an_app_without_nodes_is_named_and_makes_no_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "app.yml"
    file.write_text("kind: app\napp: {mode: agent-chat}\nmodel_config: {}", encoding="utf-8")

    assert main(["check", str(file)]) == 0
    assert f"devhost does not play it:\n  {file} is of the mode agent-chat" in capsys.readouterr().out


def test_a_tool_node_sets_only_parameters_of_its_tool(tmp_path: Path) -> None:
    repeat = tool("toolbox", "repeat", word=mixed("a"), wrod=mixed("b"))
    file = FlowFile.read(chatflow(tmp_path, [START, repeat], chain("start", "repeat")))

    (told,) = (each for each in check_flow(file, {}, (), [PluginDeclaration.read(TOOLBOX)]) if "wrod" in each)

    assert "sets the parameter 'wrod' (did you mean 'word'?), which repeat does not have: Dify plays it" in told


def test_notes_on_the_canvas_are_no_nodes(tmp_path: Path) -> None:
    note = {"id": "n1", "type": "custom-note", "data": {"type": "", "text": "{{#nothing.here#}}"}}

    assert "n1" not in changed(tmp_path, lambda d: d["workflow"]["graph"]["nodes"].append(note)).nodes


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [", "is not valid YAML"),
        ("kind: app", "app.mode: Field required"),
        ("kind: graph\napp: {mode: workflow}\nworkflow: {graph: {nodes: []}}", "kind: Input should be 'app'"),
        (
            "kind: rag_pipeline\nrag_pipeline: {name: a}",
            "is a knowledge pipeline, which fills a knowledge base. devhost",
        ),
        (
            "kind: app\napp: {mode: agent-chat}",
            "is of the mode agent-chat: an Agent app, which has a prompt and tools in",
        ),
        (
            "kind: app\napp: {mode: chat}",
            "is of the mode chat: a Chatbot app, which has a prompt in place of nodes; Dify",
        ),
        (
            "kind: app\napp: {mode: completion}",
            "is of the mode completion: a Text Generator app, which has a prompt in",
        ),
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
        check_flow(form, with_read_files(form, typed_inputs(form, assignments), HostLimits()), ())

    assert sentence in str(refused.value)


def test_a_text_field_holds_what_is_typed_and_others_hold_json_or_files(
    form: FlowFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    typed = typed_inputs(form, ("topic=12", "count=12", "sure=true", "one=@notes.txt", "many=@notes.txt"))
    inputs = filled_inputs(form, with_read_files(form, typed, HostLimits()))

    assert not list(wrong_inputs(form, inputs))
    one = inputs.pop("one")
    many = inputs.pop("many")
    assert inputs == {"topic": "12", "count": 12, "size": "m", "sure": True}
    assert [one.path.name, *(file.path.name for file in many)] == ["notes.txt"] * 2
