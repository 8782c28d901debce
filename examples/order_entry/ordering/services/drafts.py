"""Saves drafts: new ones, and changed ones as long as they are not on their way."""

from tool_layer.database import Database
from tool_layer.errors import RefusedError

from ordering.orders.payload import StoredOrder
from ordering.orders.transforms import to_payload
from ordering.storage.orders import OrderRequests
from ordering.values.inputs import Draft
from ordering.values.results import SalesResult

from .wording import described


class Drafts:
    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, draft: Draft) -> SalesResult:
        """One transaction.

        Raises:
            RefusedError: There is no such order request, it is another customer's, or it cannot change any more.
        """
        payload = to_payload(draft)
        with self._database.session() as session:
            orders = OrderRequests(session)
            if draft.order_request_id is None:
                saved = orders.add(payload, draft.status)
            else:
                _require_changeable(orders.get(draft.order_request_id), draft.customer_number)
                saved = orders.change(draft.order_request_id, payload, draft.status)
        return SalesResult(message=f"Saved. {described(saved)}\n{_advice(saved)}", saved_order_request_id=saved.id)


def _require_changeable(order: StoredOrder, customer_number: str) -> None:
    if order.payload.customer_number != customer_number:
        raise RefusedError(
            f"Order request {order.id} is that of customer {order.payload.customer_number}, not of {customer_number}. "
            "Save a new draft with order_request_id null."
        )
    if order.status == "requested":
        raise RefusedError(
            f"Order request {order.id} is placed as {order.order_number} and cannot change any more. "
            "Save a new draft with order_request_id null if the customer wants something else as well."
        )
    if order.status == "requesting":
        raise RefusedError(
            f"Order request {order.id} may be placed already: the order system has not answered. "
            "Call request_order with the same text to find out; it places nothing twice."
        )


def _advice(saved: StoredOrder) -> str:
    if saved.status == "incomplete":
        return "It is not requested. Ask the customer what is missing, then save the whole draft again under this id."
    return "It is not requested. review_order returns the text with which request_order places it."
