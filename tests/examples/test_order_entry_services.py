"""Order entry's services over both databases, with the example's own order system behind HTTP."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import httpx
import pytest
from order_system_server.book import OrderBook
from order_system_server.server import OrderSystemServer
from ordering.application import Application
from ordering.order_system import HttpOrderSystem, Placed, UnknownOutcomeError
from ordering.orders.payload import ExternalOrder
from ordering.storage.orders import OrderRequests
from ordering.storage.tables import OrderRequestRow
from ordering.values.inputs import Draft, ItemQuery, OrderToRequest, SimilarQuery
from ordering.values.results import Judgement
from sqlalchemy import URL, update
from tool_layer.errors import RefusedError

type Fields = Mapping[str, object]

SEEDED, SEEDED_PLACED = 1, 2
ORDERED = (
    "Customer C-3001, Café Lindqvist; delivery as soon as possible; "
    "NP-200 ペーパーナプキン 4つ折り: 40 pack (100 sheets). Review: no concerns."
)
NAPKINS = {"item_code": "NP-200", "item_name": "ペーパーナプキン 4つ折り", "quantity": 40, "unit": "pack"}


@pytest.fixture(scope="module")
def order_system() -> Iterator[OrderSystemServer]:
    with OrderSystemServer(OrderBook()) as server:
        yield server


@pytest.fixture
def book(order_system: OrderSystemServer) -> OrderBook:
    order_system.book.clear()
    return order_system.book


@pytest.fixture
def application(database_url: URL, order_system: OrderSystemServer, book: OrderBook) -> Application:
    assert book.orders == []
    return Application.over(database_url, HttpOrderSystem(order_system.url))


def draft(order_request_id: int | None = None, line: Fields | None = None, **changes: object) -> Draft:
    whole_line = {**NAPKINS, "pack_size": "100 sheets", "confidence": "high", **(line or {})}
    whole = {
        "order_request_id": order_request_id,
        "customer_number": "C-3001",
        "customer_name": "Café Lindqvist",
        "branch": None,
        "delivery_date": None,
        "note": None,
        "status": "ready",
        "lines": [whole_line],
    }
    return Draft.model_validate({**whole, **changes})


def request(order_request_id: int, text: str = ORDERED) -> OrderToRequest:
    return OrderToRequest(order_request_id=order_request_id, order=text)


def saved(
    application: Application, order_request_id: int | None = None, line: Fields | None = None, **changes: object
) -> int:
    result = application.drafts.save(draft(order_request_id, line, **changes))
    assert result.saved_order_request_id is not None
    return result.saved_order_request_id


def status(application: Application, order_request_id: int) -> str:
    with application.database.session() as session:
        return OrderRequests(session).get(order_request_id).status


def test_a_search_lists_items_with_what_a_draft_needs(application: Application) -> None:
    message = application.items.search(ItemQuery(query="ﾅﾌﾟｷﾝ")).message

    assert (
        "NP-200: ペーパーナプキン 4つ折り (Paper napkins folded in four), 100 sheets, sold by pack or case" in message
    )
    assert "NP-210" in message
    assert "No item is like 'elephant'" in application.items.search(ItemQuery(query="elephant")).message


@pytest.mark.parametrize(
    ("customer", "items", "referenced"),
    [
        ("C-1042", "hot cups 240ml, lids 80mm", SEEDED),
        ("ｃ-1042", "ﾎｯﾄｶｯﾌﾟ 240、ﾘｯﾄﾞ 80", SEEDED),
        ("C1042", "hot cup 240, lid 80mm", SEEDED),
        ("喫茶ﾐﾅﾄ 横浜店", "CP-240, CL-080", SEEDED),
        ("C-104", "CP-240, CL-080", None),
        ("きっさ ミナト", "CP-240, CL-080", None),
        ("喫茶ミナト", "CP-240, CL-080", SEEDED),
        ("Bento Harbor", "lunch boxes 700", SEEDED_PLACED),
        ("C-1043", "CP-240, CL-080", None),
        ("C-1042", "elephant", None),
        ("C-1042", "、", None),
    ],
)
def test_an_order_that_is_the_same_is_found(
    application: Application, customer: str, items: str, referenced: int | None
) -> None:
    result = application.similar_orders.find(SimilarQuery(customer=customer, items=items))

    assert result.referenced_order_request_id == referenced
    assert result.saved_order_request_id is None


def test_an_order_that_is_only_partly_the_same_is_told_but_not_referenced(application: Application) -> None:
    result = application.similar_orders.find(SimilarQuery(customer="C-1042", items="CP-240, gloves, napkins"))

    assert result.referenced_order_request_id is None
    assert "Order request 1" in result.message


def test_an_order_that_was_placed_long_ago_is_no_duplicate_and_an_old_draft_is(application: Application) -> None:
    with application.database.session() as session:
        session.execute(update(OrderRequestRow).values(updated_at=datetime(2020, 1, 1)))  # noqa: DTZ001 - as stored

    found = [
        application.similar_orders.find(SimilarQuery(customer=customer, items=items)).referenced_order_request_id
        for customer, items in [("C-2207", "lunch box 700"), ("C-1042", "CP-240, CL-080")]
    ]

    assert found == [None, SEEDED]


def test_a_draft_is_saved_and_changed_under_its_id(application: Application) -> None:
    first = saved(application)
    again = saved(application, order_request_id=first, line={"quantity": 20})

    assert again == first
    with application.database.session() as session:
        order = OrderRequests(session).get(first)
    assert (order.version, order.payload.lines[0].quantity) == (2, 20)


def test_a_draft_that_does_not_exist_or_is_another_customers_is_not_changed(application: Application) -> None:
    with pytest.raises(RefusedError, match=r"^There is no order request 99\.$"):
        application.drafts.save(draft(99))
    with pytest.raises(RefusedError, match="is that of customer C-1042, not of C-3001"):
        application.drafts.save(draft(SEEDED))


def test_an_order_is_placed_once_however_often_it_is_requested(application: Application, book: OrderBook) -> None:
    order = saved(application)

    results = [application.placing.request(request(order)) for _ in range(2)]

    (placed,) = book.orders
    assert [line.quantity for line in placed.order.lines] == [40]
    assert [result.message for result in results] == [
        f"Order request {order} is placed as {placed.number}, now.",
        f"Order request {order} is placed as {placed.number}, already, by an earlier call; nothing was placed twice.",
    ]
    assert results[0].output_report == (
        f"Order {placed.number}\nCustomer C-3001, Café Lindqvist; delivery as soon as possible\n"
        "- NP-200 ペーパーナプキン 4つ折り: 40 pack (100 sheets)"
    )
    assert results[1].output_report == results[0].output_report
    with pytest.raises(RefusedError, match=f"is placed as {placed.number} and cannot change any more"):
        application.drafts.save(draft(order))


def test_calls_side_by_side_place_one_order(application: Application, book: OrderBook) -> None:
    order = saved(application)

    with ThreadPoolExecutor(4) as executor:
        reports = {each.output_report for each in executor.map(application.placing.request, [request(order)] * 8)}

    assert len(book.orders) == len(reports) == 1
    assert status(application, order) == "requested"


@pytest.mark.parametrize(
    "changes",
    [
        {"line": {"quantity": 41}},
        {"line": {"unit": "case"}},
        {"branch": "Kita"},
        {"delivery_date": "2099-04-01"},
        {"customer_name": "Café Lund"},
    ],
)
def test_what_is_requested_has_to_be_what_the_draft_holds(
    application: Application, book: OrderBook, changes: dict[str, Any]
) -> None:
    order = saved(application, **changes)

    with pytest.raises(RefusedError, match="the order or its review is another one now") as raised:
        application.placing.request(request(order))

    assert (book.orders, status(application, order)) == ([], "ready")
    review = application.reviewing.review(order)
    assert review.order_to_approve is not None
    assert review.order_to_approve in str(raised.value)
    assert application.placing.request(request(order, f" {review.order_to_approve}\n")).output_report is not None


def test_what_was_reviewed_as_wrong_is_placed_only_with_the_review_in_what_was_approved(
    application: Application, book: OrderBook
) -> None:
    order = saved(application, line={"confidence": "low"})
    guess = "Line 1: 'ペーパーナプキン 4つ折り' is only a guess; ask the customer."
    reviewed = application.reviewing.review(order).order_to_approve
    assert reviewed is not None
    assert reviewed.endswith(f"Review: {guess}")

    verdict = Judgement(verdict="change", concerns=("The customer wrote four, not forty.",), confidence="high")
    assert application.reviewing.record(application.reviewing.to_read(order), verdict)
    for text in (ORDERED, reviewed):
        with pytest.raises(RefusedError, match="The customer wrote four, not forty"):
            application.placing.request(request(order, text))
    assert book.orders == []

    seen = application.reviewing.review(order).order_to_approve
    assert seen is not None
    assert seen.endswith(f"Review: {guess} The customer wrote four, not forty.")
    application.placing.request(request(order, seen))
    assert len(book.orders) == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"status": "incomplete"}, "It is saved as incomplete."),
        ({"line": {"item_code": None}}, "has no item code yet"),
        ({"line": {"unit": "piece"}}, "sold by pack or case"),
    ],
)
def test_a_draft_with_open_questions_or_mistakes_is_not_placed(
    application: Application, book: OrderBook, changes: dict[str, Any], reason: str
) -> None:
    order = saved(application, **changes)

    with pytest.raises(RefusedError, match="cannot be placed yet") as raised:
        application.placing.request(request(order))

    assert reason in str(raised.value)
    assert book.orders == []


def test_when_the_order_system_is_down_the_draft_is_kept(application: Application, database_url: URL) -> None:
    order = saved(application)
    alone = Application.over(database_url, HttpOrderSystem("http://127.0.0.1:1"))

    with pytest.raises(RefusedError, match="Nothing was placed: the order system cannot be reached"):
        alone.placing.request(request(order))

    assert status(application, order) == "ready"
    assert application.placing.request(request(order)).output_report is not None


class AnswerLost:
    """Places the order, but its answer does not arrive."""

    def __init__(self, behind: HttpOrderSystem) -> None:
        self._behind = behind

    def place(self, order: ExternalOrder, idempotency_key: str) -> Placed:
        self._behind.place(order, idempotency_key)
        raise UnknownOutcomeError("the order system did not answer in time")


def test_after_a_lost_answer_the_content_is_fixed_and_a_repeated_call_finds_the_order(
    application: Application, database_url: URL, order_system: OrderSystemServer, book: OrderBook
) -> None:
    order = saved(application)
    losing = Application.over(database_url, AnswerLost(HttpOrderSystem(order_system.url)))

    with pytest.raises(RefusedError, match="It is not known whether"):
        losing.placing.request(request(order))
    with pytest.raises(RefusedError, match="may be placed already"):
        application.drafts.save(draft(order))
    unreachable = Application.over(database_url, HttpOrderSystem("http://127.0.0.1:1"))
    with pytest.raises(RefusedError, match="It is not known whether"):
        unreachable.placing.request(request(order))

    assert "already" in application.placing.request(request(order)).message
    assert len(book.orders) == 1
    assert status(application, order) == "requested"


@pytest.mark.parametrize(
    ("answer", "known"),
    [
        (httpx.Response(422, json={"error": "the key was used"}), "refuses the order: the key was used"),
        (httpx.Response(403, text="<html>"), "refuses the order: status 403"),
        (httpx.Response(503), None),
        (httpx.Response(200, json={"order_number": 4}), None),
    ],
)
def test_only_a_clear_refusal_says_that_nothing_was_placed(
    database_url: URL, answer: httpx.Response, known: str | None
) -> None:
    system = HttpOrderSystem("http://orders.example", httpx.MockTransport(lambda _: answer))
    application = Application.over(database_url, system)
    order = saved(application)

    with pytest.raises(RefusedError) as raised:
        application.placing.request(request(order))

    assert (known or "It is not known whether") in str(raised.value)
    assert status(application, order) == ("ready" if known else "requesting")


def test_the_order_system_takes_a_key_for_one_content_only(order_system: OrderSystemServer, book: OrderBook) -> None:
    order: Fields = {"customer": "C-1", "branch": None, "deliver_on": None, "lines": []}
    with httpx.Client(base_url=order_system.url, headers={"Idempotency-Key": "k"}) as client:
        answers = [
            client.post("/orders", json=order),
            client.post("/orders", json=order),
            client.post("/orders", json={**order, "customer": "C-2"}),
            client.post("/orders", json={"customer": "C-2"}),
            client.post("/orders", json=order, headers={"Idempotency-Key": ""}),
            client.post("/else", json=order),
        ]

    assert [answer.status_code for answer in answers] == [201, 200, 422, 400, 400, 404]
    assert all(answer.json()["error"] for answer in answers[2:])
    assert len(book.orders) == 1


def test_a_review_names_what_the_rules_find(application: Application) -> None:
    order = saved(application, line={"item_code": None, "quantity": 500, "confidence": "low"})

    result = application.reviewing.review(order)

    assert result.reviewer_output is not None
    assert result.reviewer_output.verdict == "change"
    assert len(result.reviewer_output.findings) == 2
    assert result.order_to_approve is None


def test_a_second_readers_judgement_counts_for_the_version_that_was_read(application: Application) -> None:
    order = saved(application)
    read = application.reviewing.to_read(order)
    judgement = Judgement(verdict="change", concerns=("Forty packs are half a pallet.",), confidence="medium")

    assert application.reviewing.record(read, judgement.model_copy(update={"verdict": "pass"}))
    assert application.reviewing.record(read, judgement)
    output = application.reviewing.review(order).reviewer_output
    assert output is not None
    assert (output.verdict, output.second_reader) == ("change", judgement)

    saved(application, order_request_id=order, line={"quantity": 20})
    changed = application.reviewing.review(order).reviewer_output
    assert changed is not None
    assert (changed.verdict, changed.version, changed.second_reader) == ("pass", 2, None)
    assert not application.reviewing.record(read, judgement)
