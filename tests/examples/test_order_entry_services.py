"""Order entry's services over both databases, with the example's own order system behind HTTP."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import httpx
import pytest
from order_desk.order_system_server import OrderSystemServer
from ordering.order_system import ExternalOrder, OrderSystem, Placed, UnknownOutcomeError
from ordering.orders import Line, Order, OrderRequest
from ordering.services import OrderError, OrderService, Placement, RunSteps, UnknownRequestError
from ordering.storage import OrderRequestRow, OrderRequests
from sqlalchemy import URL, update
from tool_layer.run_steps import Turn, steps_of

SEEDED = 1
SEEDED_PLACED = 2
ORDERED = (
    "Customer C-3001, Café Lindqvist; delivery as soon as possible; "
    "NP-200 ペーパーナプキン 4つ折り: 40 pack (100 sheets). Review: no concerns."
)
NAPKINS = Line(
    item_code="NP-200",
    item_name="ペーパーナプキン 4つ折り",
    quantity=40,
    unit="pack",
    pack_size="100 sheets",
    confidence="high",
)
ORDER = Order(
    customer_number="C-3001", customer_name="Café Lindqvist", branch="", delivery_date="", note="", lines=(NAPKINS,)
)


class Desk:
    """The services, with an order system that can be exchanged."""

    def __init__(self, url: URL, order_system: OrderSystem) -> None:
        self.service = OrderService(url, order_system)

    def saved(self, number: int | None = None, status: Any = "ready", line: Any = None, **changes: Any) -> int:  # noqa: ANN401 - fields
        lines = (NAPKINS.model_copy(update=line or {}),)
        return self.service.save(ORDER.model_copy(update={"lines": lines, **changes}), status, number).id

    def requested(self, number: int, text: str = ORDERED) -> Placement:
        return self.service.request(number, text, RunSteps(self.service.database, "request_order", Turn("c-1", 2)))

    def stored(self, number: int) -> OrderRequest:
        with self.service.database.session() as session:
            found = OrderRequests(session).get(number)
        assert found is not None
        return found

    def steps(self) -> list[str]:
        return [step.tool.removeprefix("request_order: ") for step in steps_of(self.service.database, "c-1")]


@pytest.fixture(scope="module")
def running() -> Iterator[OrderSystemServer]:
    with OrderSystemServer() as server:
        yield server


@pytest.fixture
def server(running: OrderSystemServer) -> OrderSystemServer:
    running.clear()
    return running


@pytest.fixture
def desk(database_url: URL, server: OrderSystemServer) -> Desk:
    return Desk(database_url, OrderSystem(server.url))


UNREACHABLE = OrderSystem("http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("customer", "items", "found", "is_same"),
    [
        ("C-1042", "hot cups 240ml, lids 80mm", SEEDED, True),
        ("ｃ-1042", "ﾎｯﾄｶｯﾌﾟ 240, ﾘｯﾄﾞ 80", SEEDED, True),
        ("喫茶ﾐﾅﾄ 横浜店", "CP-240, CL-080", SEEDED, True),
        ("Bento Harbor", "lunch boxes 700", SEEDED_PLACED, True),
        ("C-1042", "CP-240, gloves, napkins", SEEDED, False),
        ("C-1043", "CP-240, CL-080", None, False),
        ("C-1042", "elephant", None, False),
    ],
)
def test_an_order_that_is_alike_is_found(
    desk: Desk, customer: str, items: str, found: int | None, *, is_same: bool
) -> None:
    alike = desk.service.similar(customer, items.split(", ") if items else [])

    assert [each.value.id for each in alike] == ([] if found is None else [found])
    assert [each.likeness >= 80 for each in alike] == ([] if found is None else [is_same])


def test_the_open_orders_of_a_customer_are_found_by_the_customer_alone(desk: Desk) -> None:
    drafts = [desk.saved(customer_number="C-3001") for _ in range(2)]

    assert [each.id for each in desk.service.open_of("c3001")] == [drafts[1], drafts[0]]
    assert [each.id for each in desk.service.open_of("C-1042")] == [SEEDED]
    assert desk.service.open_of("C-2207") == []  # its only one is placed
    assert desk.service.open_of("C-9999") == []


def test_an_order_that_was_placed_long_ago_is_no_duplicate_and_an_old_draft_is(desk: Desk) -> None:
    with desk.service.database.session() as session:
        session.execute(update(OrderRequestRow).values(updated_at=datetime(2020, 1, 1)))  # noqa: DTZ001 - as stored

    assert desk.service.similar("C-2207", ["lunch box 700"]) == []
    assert [each.value.id for each in desk.service.similar("C-1042", ["CP-240", "CL-080"])] == [SEEDED]


def test_a_draft_is_saved_and_changed_under_its_id_and_only_by_its_customer(desk: Desk) -> None:
    first = desk.saved()
    assert desk.saved(first, line={"quantity": 20}) == first

    request = desk.stored(first)
    assert (request.version, request.order.lines[0].quantity) == (2, 20)
    with pytest.raises(UnknownRequestError, match=r"^There is no order request 99\.$"):
        desk.saved(99)
    with pytest.raises(OrderError, match=r"^other customer: "):
        desk.saved(SEEDED)


def test_an_order_is_placed_once_and_each_transaction_has_a_run_step(desk: Desk, server: OrderSystemServer) -> None:
    order = desk.saved()

    placements = [desk.requested(order) for _ in range(2)]

    ((number, placed),) = server.orders.items()
    assert [line.quantity for line in placed.lines] == [40]
    assert [(each.is_new, each.request.order_number) for each in placements] == [(True, number), (False, number)]
    assert desk.steps() == ["fix", "send", "settle", "fix"]
    settled = steps_of(desk.service.database)[2]
    assert (settled.output["result"]["status"], settled.input) == ("requested", {"order_request_id": order})
    with pytest.raises(OrderError, match=r"^fixed: "):
        desk.saved(order)


def test_calls_side_by_side_place_one_order(desk: Desk, server: OrderSystemServer) -> None:
    order = desk.saved()

    with ThreadPoolExecutor(4) as executor:
        numbers = {each.request.order_number for each in executor.map(desk.requested, [order] * 8)}

    assert set(server.orders) == numbers
    assert len(numbers) == 1
    assert desk.stored(order).status == "requested"


@pytest.mark.parametrize(
    "changes",
    [{"line": {"quantity": 41}}, {"line": {"unit": "case"}}, {"branch": "Kita"}, {"delivery_date": "2099-04-01"}],
)
def test_what_is_requested_has_to_be_what_the_draft_holds(
    desk: Desk, server: OrderSystemServer, changes: dict[str, Any]
) -> None:
    order = desk.saved(**changes)

    with pytest.raises(OrderError, match=r"^not approved: ") as raised:
        desk.requested(order)

    assert (server.orders, desk.stored(order).status) == ({}, "ready")
    held = desk.service.review(order).to_approve
    assert raised.value.why == held
    assert desk.requested(order, f" {held}\n").is_new


def test_what_was_reviewed_as_doubtful_is_placed_only_with_the_review_in_what_was_approved(
    desk: Desk, server: OrderSystemServer
) -> None:
    order = desk.saved(line={"confidence": "low"})
    guess = "Line 1: 'ペーパーナプキン 4つ折り' is only a guess; ask the customer."

    with pytest.raises(OrderError, match=guess):
        desk.requested(order)
    assert server.orders == {}

    seen = desk.service.review(order).to_approve
    assert seen.endswith(f"Review: {guess}")
    assert desk.requested(order, seen).is_new


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"status": "incomplete"}, None),
        ({"line": {"item_code": ""}}, "has no item code yet"),
        ({"line": {"unit": "piece"}}, "sold by pack or case"),
    ],
)
def test_a_draft_with_open_questions_or_mistakes_is_not_placed(
    desk: Desk, server: OrderSystemServer, changes: dict[str, Any], why: str | None
) -> None:
    order = desk.saved(**changes)

    with pytest.raises(OrderError, match=why):
        desk.requested(order)

    assert server.orders == {}
    assert steps_of(desk.service.database)[-1].output["exception"].startswith("OrderError: incomplete: ")


def test_when_the_order_system_is_down_the_draft_is_kept(desk: Desk, database_url: URL) -> None:
    order = desk.saved()

    with pytest.raises(OrderError, match="the order system cannot be reached"):
        Desk(database_url, UNREACHABLE).requested(order)

    assert desk.stored(order).status == "ready"
    assert desk.steps() == ["fix", "send", "release"]
    assert desk.requested(order).is_new


class AnswerLost(OrderSystem):
    """Places the order, but its answer does not arrive."""

    def place(self, order: ExternalOrder, idempotency_key: str) -> Placed:
        super().place(order, idempotency_key)
        raise UnknownOutcomeError("the order system did not answer in time")


def test_after_a_lost_answer_the_content_is_fixed_and_a_repeated_call_finds_the_order(
    desk: Desk, database_url: URL, server: OrderSystemServer
) -> None:
    order = desk.saved()

    for system in (AnswerLost(server.url), UNREACHABLE):
        with pytest.raises(OrderError, match=r"^unknown outcome: "):
            Desk(database_url, system).requested(order)
    with pytest.raises(OrderError, match=r"^fixed: "):
        desk.saved(order)

    assert not desk.requested(order).is_new
    assert len(server.orders) == 1
    assert desk.stored(order).status == "requested"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (httpx.Response(422, json={"error": "the key was used"}), "refuses the order: the key was used"),
        (httpx.Response(503), None),
        (httpx.Response(200, json={"order_number": 4}), None),
    ],
)
def test_only_a_clear_refusal_says_that_nothing_was_placed(
    database_url: URL, answer: httpx.Response, why: str | None
) -> None:
    desk = Desk(database_url, OrderSystem("http://orders.example", httpx.MockTransport(lambda _: answer)))
    order = desk.saved()

    with pytest.raises(OrderError, match=f"^not placed: .*{why}" if why else r"^unknown outcome: "):
        desk.requested(order)

    assert desk.stored(order).status == ("ready" if why else "requesting")
