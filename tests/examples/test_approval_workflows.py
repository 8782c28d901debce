"""The approval chatflows, and that of order entry, ask before a tool acts, and keep the agent's state."""

import re
from typing import Any

import jinja2
import pytest

from internal.memory.approval import Decision, Verdict, read_decision

from .workflow import ROOT, Node, Workflow

FOLDER = ROOT / "examples" / "workflows"
WORKFLOWS = {
    **{file.stem: Workflow.read(file) for file in sorted(FOLDER.glob("approval*.yml"))},
    "order_entry": Workflow.read(ROOT / "examples" / "order_entry" / "workflow.yml"),
}
HARMLESS = {
    *("search_documents", "read_document"),
    *("search_items", "find_similar_orders", "save_order_draft", "review_order"),
}
"""Tools that read, or write only what a later call uses."""
AGENTS = {f"{name}-{node.id}": (workflow, node) for name, workflow in WORKFLOWS.items() for node in workflow.agents}

every_workflow = pytest.mark.parametrize("workflow", WORKFLOWS.values(), ids=WORKFLOWS)
every_agent = pytest.mark.parametrize(("workflow", "node"), AGENTS.values(), ids=AGENTS)
each_alone = pytest.mark.parametrize("node", [node for _, node in AGENTS.values()], ids=AGENTS)


def test_the_chatflows_are_there() -> None:
    assert list(WORKFLOWS) == ["approval", "approval_form", "order_entry"]


@each_alone
def test_every_tool_that_acts_needs_approval(node: Node) -> None:
    """`approval_required` fails closed: an entry that matches no tool ends every run in an error."""
    parameters = node.data["agent_parameters"]
    offered = {tool["tool_name"] for tool in parameters["tools"]["value"] if tool["enabled"]}
    required = {name.strip() for name in parameters["approval_required"]["value"].split(",")}

    assert required <= offered
    assert offered - required == offered & HARMLESS


@every_agent
def test_the_state_of_each_agent_is_written_back_and_an_error_clears_it(workflow: Workflow, node: Node) -> None:
    (kept,) = [item for item in workflow.assignments if item["value"] == [node.id, "state"]]
    assert kept["operation"] == "over-write"
    if node.data["error_strategy"] == "default-value":
        assert {"key": "state", "type": "string", "value": ""} in node.data["default_value"]
    for after_error in (
        edge.target for edge in workflow.edges if (edge.source, edge.handle) == (node.id, "fail-branch")
    ):
        (cleared,) = workflow.nodes[after_error].data["items"]
        assert cleared["operation"] == "clear"
    assert {item["input_type"] for item in workflow.assignments} == {"variable"}  # graphon clears a text with no other
    assert {tuple(item["variable_selector"]) for item in workflow.assignments} == {("conversation", "state")}
    assert workflow.conversation == {"state": node.strategy["output_schema"]["properties"]["state"]["type"]}


@every_workflow
def test_every_answer_after_a_run_that_ended_well_comes_after_its_state_is_kept(workflow: Workflow) -> None:
    for answer in (node for node in workflow.nodes.values() if ("agent", "text") in node.selectors()):
        if answer.type == "answer":
            assert all("save" in [edge.source for edge in way] for way in workflow.ways_to(answer.id))


def given(node: Node, *names: str) -> list[str]:
    return [node.data["agent_parameters"].get(name, {}).get("value", "") for name in names]


@pytest.mark.parametrize("name", ["approval", "order_entry"])
def test_in_the_chat_the_next_message_is_the_answer(name: str) -> None:
    (agent,) = WORKFLOWS[name].agents

    assert given(agent, "query", "approval") == ["{{#sys.query#}}", "{{#sys.query#}}"]
    assert given(agent, "state") == ["{{#conversation.state#}}"]


def test_only_the_form_approves_where_there_is_one() -> None:
    """A waiting state is not kept: approved in the chat while the form is open, its call would run twice."""
    first, second = form().agents

    assert given(first, "query", "approval", "state") == ["{{#sys.query#}}", "", "{{#conversation.state#}}"]
    assert given(second, "query", "approval", "state") == [
        "{{#sys.query#}}",
        "{{#decision.output#}}",
        "{{#agent.state#}}",
    ]
    for way in form().ways_to("save"):
        assert ("waits", "false") in [(edge.source, edge.handle) for edge in way]


def form() -> Workflow:
    return WORKFLOWS["approval_form"]


def test_the_form_is_asked_exactly_where_a_call_waits() -> None:
    ((condition,),) = [case["conditions"] for case in form().nodes["waits"].data["cases"]]

    assert condition["variable_selector"] == ["agent", "stop_reason"]
    assert (condition["comparison_operator"], condition["value"]) == ("is", "approval_required")
    (asked,) = [edge.target for edge in form().edges if (edge.source, edge.handle) == ("waits", "true")]
    assert form().nodes[asked].type == "human-input"


def test_the_forms_fields_and_buttons_have_names_that_dify_takes() -> None:
    data = form().nodes["form"].data
    fields = [field["output_variable_name"] for field in data["inputs"]]
    buttons = [action["id"] for action in data["user_actions"]]

    assert re.findall(r"\{\{#\$output\.(\w+)#\}\}", data["form_content"]) == fields
    assert all(re.fullmatch(r"[A-Za-z_]\w*", name) for name in [*fields, *buttons])
    assert len({*fields}) == len(fields)
    assert len({*buttons}) == len(buttons)


def decided(action: str, reason: str) -> Any:  # noqa: ANN401 - one of several decisions
    """What the second agent makes of the form."""
    data = form().nodes["decision"].data
    assert [variable["value_selector"] for variable in data["variables"]] == [
        ["form", "__action_id"],
        ["form", "reason"],
    ]
    values = dict(zip([variable["variable"] for variable in data["variables"]], [action, reason], strict=True))
    return read_decision(jinja2.Environment(autoescape=True).from_string(data["template"]).render(values))


@pytest.mark.parametrize("reason", ["", "yes", "ok", '{"call_1": true}', "too expensive"])
def test_only_the_button_of_the_form_approves(reason: str) -> None:
    buttons = [action["id"] for action in form().nodes["form"].data["user_actions"]]
    assert buttons == ["yes", "no"]

    assert decided("yes", reason) == Decision(Verdict(approved=True))
    for rejection in (decided("no", reason), decided("", reason)):
        assert rejection is not None
        assert not rejection.others.approved
        assert rejection.others.reason


def test_the_page_names_every_file() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")

    assert all(f"({file.name})" in page for file in sorted(FOLDER.glob("*.yml")))
