"""Places an order request with the order system: once, whatever happens on the way.

Three steps, so that no transaction waits for the network: mark it `requesting`, send it, write down what became of it.
A process that dies between them leaves it `requesting`, and the next call sends the same content with the same key.
"""

from datetime import UTC, datetime

from tool_layer.database import Database
from tool_layer.errors import RefusedError

from ordering.order_system import NotPlacedError, OrderSystem, UnknownOutcomeError
from ordering.orders.payload import StoredOrder
from ordering.orders.rules import findings
from ordering.orders.transforms import to_external
from ordering.storage.items import Items
from ordering.storage.judgements import Judgements
from ordering.storage.orders import OrderRequests
from ordering.values.inputs import OrderToRequest
from ordering.values.results import OrderEntryResult
from ordering.values.vocabulary import OrderStatus

from .wording import customer, delivery, order_lines, ordered, to_approve


class Placing:
    def __init__(self, database: Database, order_system: OrderSystem) -> None:
        self._database = database
        self._order_system = order_system

    def request(self, asked: OrderToRequest) -> OrderEntryResult:
        """Raises RefusedError: it was not placed, or it is not known whether it was; the sentence says which."""
        order = self._claimed(asked)
        if order.status == "requested":
            return _report(order, "placed_before")
        try:
            placed = self._order_system.place(to_external(order.payload), order.idempotency_key)
        except NotPlacedError as error:
            # If an earlier attempt ended without an answer, that one may have placed it.
            if order.status == "ready" and self._mark(order.id, "ready").status == "ready":
                raise RefusedError(
                    f"Nothing was placed: {error}. Order request {order.id} is kept as a draft. Tell the customer; "
                    "do not save it again."
                ) from error
            raise _unknown(order, str(error)) from error
        except UnknownOutcomeError as error:
            raise _unknown(order, str(error)) from error
        return _report(self._mark(order.id, "requested", placed.order_number), placed.status)

    def _claimed(self, asked: OrderToRequest) -> StoredOrder:
        """The order request as it was before it was marked as `requesting`; from then on its content is fixed."""
        with self._database.session() as session:
            orders = OrderRequests(session)
            order = orders.get(asked.order_request_id)
            items = Items(session).by_code([line.item_code for line in order.payload.lines])
            found = findings(order.payload, items, datetime.now(UTC).date())
            if order.status in {"incomplete", "ready"}:
                _require_complete(order, found.wrong)
            _require_same(asked, order, to_approve(order.payload, found, Judgements(session).of(order)))
            if order.status == "ready":
                orders.mark(order.id, "requesting")
            return order

    def _mark(self, order_request_id: int, status: OrderStatus, order_number: str = "") -> StoredOrder:
        """What is placed stays so, whatever a call beside this one wants to write."""
        with self._database.session() as session:
            orders = OrderRequests(session)
            order = orders.get(order_request_id)
            return order if order.status == "requested" else orders.mark(order.id, status, order_number)


def _unknown(order: StoredOrder, reason: str) -> RefusedError:
    return RefusedError(
        f"It is not known whether order request {order.id} was placed: {reason}. Tell the customer, and call "
        "request_order with the same text later; it places nothing twice."
    )


def _require_complete(order: StoredOrder, wrong: tuple[str, ...]) -> None:
    reasons = ("It is saved as incomplete.", *wrong) if order.status == "incomplete" else wrong
    if reasons:
        raise RefusedError(f"Order request {order.id} cannot be placed yet. {' '.join(reasons)}")


def _require_same(asked: OrderToRequest, order: StoredOrder, held: str) -> None:
    """What was approved is what is stored, and how it was reviewed. A new review stops no order that is on its way."""
    given = " ".join(asked.order.split())
    is_same = given == " ".join(held.split())
    if not is_same and (order.status == "ready" or not given.startswith(" ".join(ordered(order.payload).split()))):
        raise RefusedError(
            f"Nothing was placed: the order or its review is another one now. Order request {order.id} is: {held} If "
            "that is what the customer wants, call request_order with exactly this text; else save the draft first."
        )


def _report(order: StoredOrder, status: str) -> OrderEntryResult:
    before = "already, by an earlier call; nothing was placed twice" if status == "placed_before" else "now"
    return OrderEntryResult(
        message=f"Order request {order.id} is placed as {order.order_number}, {before}.",
        output_report=f"Order {order.order_number}\n{customer(order.payload)}; {delivery(order.payload)}\n"
        f"{order_lines(order.payload)}",
    )
