"""The approval chatflows, and that of order entry, ask before a tool acts, and keep the agent's state.

What they do in a conversation is shown where the engine is: the cases of examples/workflows.
"""

from typing import Any

import jinja2
import pytest

from devhost.flow.document import FlowFile
from devhost.trace.flow import FlowNode
from internal.memory.approval import Decision, Verdict, read_decision

from .conftest import EXAMPLES

FOLDER = EXAMPLES / "workflows"
FORM = FlowFile.read(FOLDER / "approval_form.yml")
FLOWS = [FlowFile.read(FOLDER / "approval.yml"), FORM, FlowFile.read(EXAMPLES / "order_entry" / "workflow.yml")]
HARMLESS = {
    *("search_documents", "read_document"),
    *("search_items", "find_similar_orders", "save_order_draft", "review_order"),
}
"""Tools that read, or write only what a later call uses."""


@pytest.mark.parametrize("node", [node for flow in FLOWS for node in flow.nodes.values() if node.type == "agent"])
def test_every_tool_that_acts_needs_approval(node: FlowNode) -> None:
    """`approval_required` fails closed: an entry that matches no tool ends every run in an error."""
    parameters = node.data["agent_parameters"]
    offered = {tool["tool_name"] for tool in parameters["tools"]["value"] if tool["enabled"]}
    required = {name.strip() for name in parameters["approval_required"]["value"].split(",")}

    assert required <= offered
    assert offered - required == offered & HARMLESS


def given(node: FlowNode, *names: str) -> list[str]:
    return [node.data["agent_parameters"].get(name, {}).get("value", "") for name in names]


def test_only_the_form_approves_where_there_is_one() -> None:
    """A waiting state is not kept: approved in the chat while the form is open, its call would run twice."""
    first, second = (node for node in FORM.nodes.values() if node.type == "agent")

    assert given(first, "query", "approval", "state") == ["{{#sys.query#}}", "", "{{#conversation.state#}}"]
    assert given(second, "query", "approval", "state") == [
        "{{#sys.query#}}",
        "{{#decision.output#}}",
        "{{#agent.state#}}",
    ]


def decided(action: str, reason: str) -> Any:  # noqa: ANN401 - one of several decisions
    """What the second agent makes of the form."""
    data = FORM.nodes["decision"].data
    assert [variable["value_selector"] for variable in data["variables"]] == [
        ["form", "__action_id"],
        ["form", "reason"],
    ]
    values = dict(zip([variable["variable"] for variable in data["variables"]], [action, reason], strict=True))
    return read_decision(jinja2.Environment(autoescape=True).from_string(data["template"]).render(values))


@pytest.mark.parametrize("reason", ["", "yes", "ok", '{"call_1": true}', "too expensive"])
def test_only_the_button_of_the_form_approves(reason: str) -> None:
    buttons = [action["id"] for action in FORM.nodes["form"].data["user_actions"]]
    assert buttons == ["yes", "no"]

    assert decided("yes", reason) == Decision(Verdict(approved=True))
    for rejection in (decided("no", reason), decided("", reason)):
        assert rejection is not None
        assert not rejection.others.approved
        assert rejection.others.reason


def test_the_page_names_every_file() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")

    assert all(f"({file.name})" in page for file in sorted(FOLDER.glob("*.yml")))
