"""The way to the order system: an HTTP server of another department.

In: an order and its idempotency key. Out: the order's number, or why there is none. The key is the same for every
attempt at one order request, so that an attempt that is repeated places nothing twice.
"""

from typing import Literal, Protocol

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from ordering.orders.payload import ExternalOrder

CREDENTIAL = "order_system_url"
DEFAULT_URL = "http://127.0.0.1:8737"
KEY_HEADER = "Idempotency-Key"
_SECONDS = 10


class Placed(BaseModel):
    model_config = ConfigDict(frozen=True)

    order_number: str
    status: Literal["placed", "placed_before"]


class NotPlacedError(Exception):
    """The order system certainly has not taken the order; the sentence says why."""


class UnknownOutcomeError(Exception):
    """The order may have been placed: the connection ended before the answer came."""


class OrderSystem(Protocol):
    def place(self, order: ExternalOrder, idempotency_key: str) -> Placed:
        """Raises: NotPlacedError, UnknownOutcomeError."""
        ...


class HttpOrderSystem:
    def __init__(self, url: str, transport: httpx.BaseTransport | None = None) -> None:
        self._url = url.rstrip("/")
        self._transport = transport

    def place(self, order: ExternalOrder, idempotency_key: str) -> Placed:
        try:
            with httpx.Client(timeout=_SECONDS, transport=self._transport) as client:
                response = client.post(
                    f"{self._url}/orders",
                    content=order.model_dump_json(),
                    headers={KEY_HEADER: idempotency_key, "Content-Type": "application/json"},
                )
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise NotPlacedError("the order system cannot be reached") from error
        except httpx.TransportError as error:
            raise UnknownOutcomeError("the order system did not answer in time") from error
        return _read(response)


def is_address(url: str) -> bool:
    try:
        read = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    return read.scheme in {"http", "https"} and bool(read.host)


def _read(response: httpx.Response) -> Placed:
    if response.is_client_error:
        raise NotPlacedError(f"the order system refuses the order: {_reason(response)}")
    if not response.is_success:
        raise UnknownOutcomeError(f"the order system failed with status {response.status_code}")
    try:
        return Placed.model_validate_json(response.content)
    except ValidationError as error:
        raise UnknownOutcomeError("the order system's answer cannot be read") from error


def _reason(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"status {response.status_code}"
