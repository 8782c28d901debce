"""An order request as it is stored, and as the order system takes it.

Neither is what a model sends: `transforms` lead from one to the next. In a stored payload an optional text is "", and
a date is ISO 8601.
"""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from ordering.values.vocabulary import Confidence, OrderStatus, Unit


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LinePayload(_Stored):
    item_code: str
    """Empty if the item was not found in the catalogue yet."""
    item_name: str
    quantity: int
    unit: Unit
    pack_size: str
    confidence: Confidence


class OrderPayload(_Stored):
    customer_number: str
    customer_name: str
    branch: str
    delivery_date: str
    """ISO 8601; empty for the next possible day."""
    note: str
    lines: tuple[LinePayload, ...]


@dataclass(frozen=True)
class StoredOrder:
    """An order request with what the database knows of it."""

    id: int
    version: int
    """Counts the changes of the payload, from 1."""
    status: OrderStatus
    idempotency_key: str
    order_number: str
    """Of the order system; empty until the order is placed."""
    payload: OrderPayload


class ExternalLine(_Stored):
    item: str
    quantity: int
    unit_code: str


class ExternalOrder(_Stored):
    """The body of a request to the order system."""

    customer: str
    branch: str | None
    deliver_on: str | None
    lines: tuple[ExternalLine, ...]
