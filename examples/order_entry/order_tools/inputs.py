"""What a model sends, and how it becomes an order. Every field is present, and what is optional is nullable."""

import re
from typing import Annotated

from ordering.orders import Confidence, DraftStatus, Line, Order, Unit
from pydantic import Field
from tool_layer.parsing import Day, Input

type Id = Annotated[int, Field(ge=1, le=2_147_483_647)]
"""PostgreSQL's integer."""
type Name = Annotated[str, Field(min_length=1, max_length=200)]
type Code = Annotated[str, Field(min_length=1, max_length=40)]
type Quantity = Annotated[int, Field(ge=1, le=1_000_000)]

MAX_LINES = 50
_BETWEEN_ITEMS = re.compile(r"[,、;；\n]")


class ItemQuery(Input):
    query: Name


class SimilarQuery(Input):
    customer: Name
    items: Annotated[str, Field(max_length=1_000)] | None = None

    @property
    def names(self) -> list[str]:
        """Empty for all open orders of the customer."""
        if self.items is None:
            return []
        return [part.strip() for part in _BETWEEN_ITEMS.split(self.items) if part.strip()]


class DraftLine(Input):
    item_code: Code | None
    item_name: Name
    quantity: Quantity
    unit: Unit
    pack_size: Name | None
    confidence: Confidence


class Draft(Input):
    order_request_id: Id | None
    """The draft to change; null makes a new one."""
    customer_number: Code
    customer_name: Name
    branch: Name | None
    delivery_date: Day | None
    note: Annotated[str, Field(max_length=1_000)] | None
    status: DraftStatus
    lines: Annotated[list[DraftLine], Field(min_length=1, max_length=MAX_LINES)]

    @property
    def order(self) -> Order:
        """The id and the status are columns of their own, not part of the order."""
        return Order(
            customer_number=self.customer_number,
            customer_name=self.customer_name,
            branch=self.branch or "",
            delivery_date="" if self.delivery_date is None else self.delivery_date.isoformat(),
            note=self.note or "",
            lines=tuple(
                Line(
                    item_code=line.item_code or "",
                    item_name=line.item_name,
                    quantity=line.quantity,
                    unit=line.unit,
                    pack_size=line.pack_size or "",
                    confidence=line.confidence,
                )
                for line in self.lines
            ),
        )


class DraftToReview(Input):
    order_request_id: Id


class OrderToRequest(Input):
    order_request_id: Id
    order: Annotated[str, Field(min_length=1, max_length=50_000)]
    """What a person reads before the approval, as `review_order` returned it: the order, and its review."""
