"""The way to the order system, an HTTP server of another department: an order with its key goes there, once.

The key is the same for every attempt at one order request, so that an attempt that is repeated places nothing twice.
"""

from typing import Literal

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from .orders import Order

KEY_HEADER = "Idempotency-Key"
UNIT_CODES = {"piece": "PC", "pack": "PK", "case": "CS"}
"""The order system's."""
_SECONDS = 10


class _Sent(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ExternalLine(_Sent):
    item: str
    quantity: int
    unit_code: str


class ExternalOrder(_Sent):
    """The body of a request, without what is the wholesaler's own: names, notes, pack sizes, how sure the model was."""

    customer: str
    branch: str | None
    deliver_on: str | None
    lines: tuple[ExternalLine, ...]


class Placed(_Sent):
    order_number: str
    status: Literal["placed", "placed_before"]


class NotPlacedError(Exception):
    """The order system certainly has not taken the order; the sentence says why."""


class UnknownOutcomeError(Exception):
    """The order may have been placed: the connection ended before the answer came."""


def to_external(order: Order) -> ExternalOrder:
    lines = (
        ExternalLine(item=each.item_code, quantity=each.quantity, unit_code=UNIT_CODES[each.unit])
        for each in order.lines
    )
    return ExternalOrder(
        customer=order.customer_number,
        branch=order.branch or None,
        deliver_on=order.delivery_date or None,
        lines=tuple(lines),
    )


class OrderSystem:
    def __init__(self, url: str, transport: httpx.BaseTransport | None = None) -> None:
        self._url = url.rstrip("/")
        self._transport = transport

    def place(self, order: ExternalOrder, idempotency_key: str) -> Placed:
        """Raises: NotPlacedError, UnknownOutcomeError."""
        headers = {KEY_HEADER: idempotency_key, "Content-Type": "application/json"}
        try:
            with httpx.Client(timeout=_SECONDS, transport=self._transport) as client:
                response = client.post(f"{self._url}/orders", content=order.model_dump_json(), headers=headers)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise NotPlacedError("the order system cannot be reached") from error
        except httpx.TransportError as error:
            raise UnknownOutcomeError("the order system did not answer in time") from error
        if response.is_client_error:
            raise NotPlacedError(f"the order system refuses the order: {_reason(response)}")
        if not response.is_success:
            raise UnknownOutcomeError(f"the order system failed with status {response.status_code}")
        try:
            return Placed.model_validate_json(response.content)
        except ValidationError as error:
            raise UnknownOutcomeError("the order system's answer cannot be read") from error


def is_address(url: str) -> bool:
    try:
        read = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    return read.scheme in {"http", "https"} and bool(read.host)


def _reason(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"status {response.status_code}"
