"""An order as it is stored, and what becomes of it. Values only: no database, no network, no clock.

What a model sends has another shape (order_tools/inputs.py), and so has what the order system takes
(order_system.py). In an order, an optional text that is missing is "", and a date is ISO 8601.
"""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

type Unit = Literal["piece", "pack", "case"]
type DraftStatus = Literal["incomplete", "ready"]
"""Whether something still has to be asked."""
type Status = Literal["incomplete", "ready", "requesting", "requested"]
"""While an order request is `requesting`, its content must not change: it may be placed already."""
type Confidence = Literal["low", "medium", "high"]
"""How sure the model is that an item is the one that the customer means."""
type Verdict = Literal["pass", "change"]


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Line(_Stored):
    item_code: str
    """Empty if the item was not found in the catalogue yet."""
    item_name: str
    quantity: int
    unit: Unit
    pack_size: str
    confidence: Confidence

    @property
    def in_words(self) -> str:
        size = f" ({self.pack_size})" if self.pack_size else ""
        return f"{self.item_code or '(no item code yet)'} {self.item_name}: {self.quantity} {self.unit}{size}"


class Order(_Stored):
    customer_number: str
    customer_name: str
    branch: str
    delivery_date: str
    """Empty for the next possible day."""
    note: str
    lines: tuple[Line, ...]

    @property
    def customer(self) -> str:
        branch = f", {self.branch}" if self.branch else ""
        return f"Customer {self.customer_number}, {self.customer_name}{branch}"

    @property
    def delivery(self) -> str:
        if self.delivery_date:
            return f"delivery on {self.delivery_date}"
        return "delivery as soon as possible"

    @property
    def in_words(self) -> str:
        """In one line, as a person approves it."""
        return f"{self.customer}; {self.delivery}; {'; '.join(line.in_words for line in self.lines)}."


@dataclass(frozen=True)
class OrderRequest:
    """An order with what the database knows of it."""

    id: int
    version: int
    """Counts the changes of the order, from 1."""
    status: Status
    order: Order
    idempotency_key: str
    """Made with the request and never changed: it is placed once at most."""
    order_number: str
    """Of the order system; empty until the order is placed."""


@dataclass(frozen=True)
class Item:
    """Of the catalogue."""

    code: str
    name: str
    reading: str
    """In kana: people write names as they are spoken."""
    english_name: str
    pack_size: str
    units: tuple[Unit, ...]
    usual_maximum: int
    """Of one line, in any unit."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.code, self.name, self.reading, self.english_name)
