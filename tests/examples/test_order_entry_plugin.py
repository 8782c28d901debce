"""The order entry plugin in its own process, as the daemon starts it: what its tools answer, and what is written."""

from collections.abc import Iterator
from typing import Any

import pytest
from order_desk.order_system_server import OrderSystemServer
from ordering.services import OrderService
from sqlalchemy import URL
from tool_layer.run_steps import steps_of

from .conftest import ORDER_ENTRY
from .stdio_plugin import StdioPlugin

pytestmark = pytest.mark.e2e

CONVERSATION = "c-17"


class Desk:
    def __init__(self, plugin: StdioPlugin, database: URL, order_system: str) -> None:
        self._plugin = plugin
        self.database = database
        address = database.render_as_string(hide_password=False)
        self._credentials = {"database_url": address, "order_system_url": order_system}
        self.service = OrderService.by_credentials(self._credentials)

    def called(self, tool: str, **parameters: object) -> dict[str, Any]:
        """The one message of the tool: its envelope."""
        called = {"tool": tool, "tool_parameters": {"conversation": CONVERSATION, **parameters}}
        envelope: dict[str, Any] = self._event("invoke_tool", called)["data"]["message"]["json_object"]
        return envelope

    def said(self, tool: str, **parameters: object) -> str:
        message: str = self.called(tool, **parameters)["result"]["message"]
        return message

    def validated(self, **credentials: str) -> dict[str, Any]:
        return self._event("validate_tool_credentials", {"credentials": {**self._credentials, **credentials}})

    def _event(self, action: str, more: dict[str, Any]) -> dict[str, Any]:
        data = {"type": "tool", "action": action, "provider": "orders", "credentials": self._credentials}
        (event,) = self._plugin.request({"s": {**data, "credential_type": "api-key", **more}})["s"]
        return event


@pytest.fixture(scope="module")
def plugin() -> Iterator[StdioPlugin]:
    with StdioPlugin(ORDER_ENTRY, {}) as started:
        yield started


@pytest.fixture
def desk(plugin: StdioPlugin, database_url: URL) -> Iterator[Desk]:
    with OrderSystemServer() as server:
        yield Desk(plugin, database_url, server.url)


DRAFT = {
    "order_request_id": None,
    "customer_number": "C-3001",
    "customer_name": "Café Lindqvist",
    "branch": None,
    "delivery_date": None,
    "note": None,
    "status": "ready",
    "lines": [
        {
            "item_code": "NP-200",
            "item_name": "ペーパーナプキン 4つ折り",
            "quantity": 40,
            "unit": "pack",
            "pack_size": None,
            "confidence": "high",
        }
    ],
}


def test_each_tool_answers_with_the_result_of_its_agent_and_leaves_a_run_step(desk: Desk) -> None:
    found = desk.called("search_items", query="ﾅﾌﾟｷﾝ")
    similar = desk.called("find_similar_orders", customer="C-1042", items="hot cup 240, lid 80mm")
    saved = desk.called("save_order_draft", draft=DRAFT)
    number = saved["result"]["saved_order_request_id"]
    review = desk.called("review_order", order_request_id=number)
    requested = desk.called("request_order", order_request_id=number, order=review["result"]["order_to_approve"])

    assert (found["status"], set(found["result"])) == ("success", {"message"})
    assert (
        "NP-200: ペーパーナプキン 4つ折り (Paper napkins folded in four), 100 sheets, sold by pack or case"
        in found["result"]["message"]
    )
    assert similar["result"]["referenced_order_request_id"] == 1
    assert set(saved["result"]) == {"message", "saved_order_request_id"}
    output = {"order_request_id": number, "version": 1, "verdict": "pass", "findings": []}
    assert review["result"]["reviewer_output"] == output
    assert requested["result"] == {
        "message": f"Order request {number} is placed as SO-000901, now.",
        "output_report": "Order SO-000901\nCustomer C-3001, Café Lindqvist; delivery as soon as possible\n"
        "- NP-200 ペーパーナプキン 4つ折り: 40 pack",
    }
    steps = [step for step in steps_of(desk.service.database, CONVERSATION) if ":" not in step.tool]
    assert [step.tool for step in steps] == [
        *("search_items", "find_similar_orders", "save_order_draft", "review_order", "request_order")
    ]
    assert steps[2].input == {"draft": DRAFT}
    assert [step.output for step in steps] == [*(found, similar, saved, review, requested)]


def test_a_run_step_has_the_turn_that_the_panel_filled_in_and_a_wrong_one_fails_nothing(desk: Desk) -> None:
    filled_in = ["2", 3, " 12 ", "", None, "0", "-1", "two", "99999999999", "２"]

    for turn in filled_in:
        assert desk.called("search_items", query="cup", turn=turn)["status"] == "success"

    steps = steps_of(desk.service.database, CONVERSATION)
    assert [step.turn for step in steps] == [2, 3, 12, *[None] * 7]
    assert all(step.input == {"query": "cup"} for step in steps)


def test_what_a_service_does_not_do_is_a_sentence_for_the_model(desk: Desk) -> None:
    assert "Open orders of this customer: 1" in desk.said("find_similar_orders", customer="C-1042")
    assert "has no open order" in desk.said("find_similar_orders", customer="C-9999")
    assert "No item is like 'elephant'" in desk.said("search_items", query="elephant")
    assert "a new draft duplicates nothing" in desk.said("find_similar_orders", customer="C-1042", items="elephant")
    assert desk.said("review_order", order_request_id=99) == "There is no order request 99."
    assert "is that of customer C-1042" in desk.said("save_order_draft", draft={**DRAFT, "order_request_id": 1})
    desk.called("save_order_draft", draft=DRAFT)
    text = desk.called("review_order", order_request_id=3)["result"]["order_to_approve"]
    said = desk.said("request_order", order_request_id=3, order="That.")
    assert f"Order request 3 is: {text} If that is" in said
    desk.called("request_order", order_request_id=3, order=text)
    assert desk.said("request_order", order_request_id=3, order=text).endswith("nothing was placed twice.")


@pytest.mark.parametrize(
    ("tool", "parameters", "fault"),
    [
        ("search_items", {"query": " "}, "query: "),
        ("find_similar_orders", {}, "customer: Field required"),
        ("review_order", {"order_request_id": 0}, "order_request_id: "),
        ("request_order", {"order_request_id": 3}, "order: Field required"),
        ("save_order_draft", {"draft": {**DRAFT, "delivery_date": "1 April 2099"}}, "delivery_date: "),
        ("save_order_draft", {"draft": {**DRAFT, "delivery_date": 4_000_000_000}}, "delivery_date: "),
        ("save_order_draft", {"draft": {**DRAFT, "delivery_date": "1893456000.0"}}, "delivery_date: "),
    ],
)
def test_wrong_parameters_are_an_error_result_for_the_model(
    desk: Desk, tool: str, parameters: dict[str, object], fault: str
) -> None:
    envelope = desk.called(tool, **parameters)

    assert envelope["status"] == "error"
    assert envelope["result"]["message"].startswith(f"Invalid parameters for {tool}: ")
    assert fault in envelope["result"]["message"]


def test_credentials_are_checked_and_no_password_is_shown(desk: Desk) -> None:
    assert desk.validated()["data"]["result"] is True
    wrong = [
        desk.validated(order_system_url="orders"),
        desk.validated(database_url="postgresql://clerk:s3cret@127.0.0.1:1/orders"),
    ]

    assert [each["type"] for each in wrong] == ["error", "error"]
    assert "s3cret" not in str(wrong)
