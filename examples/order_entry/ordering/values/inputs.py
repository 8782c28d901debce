"""What a model sends. These are not the stored models: every field is present, and what is optional is nullable."""

from contextlib import suppress
from datetime import date
from typing import Annotated

from pydantic import BeforeValidator, Field
from tool_layer.parsing import Input

from .vocabulary import Confidence, DraftStatus, Unit

type Id = Annotated[int, Field(ge=1, le=2_147_483_647)]
"""PostgreSQL's integer."""
type Name = Annotated[str, Field(min_length=1, max_length=200)]
type Code = Annotated[str, Field(min_length=1, max_length=40)]
type Quantity = Annotated[int, Field(ge=1, le=1_000_000)]

MAX_LINES = 50


def _day(value: object) -> object:
    """Pydantic would also take a number, as seconds since 1970."""
    with suppress(ValueError):
        if isinstance(value, str):
            return date.fromisoformat(value.strip())
    raise ValueError("should be an ISO 8601 date, such as 2030-04-01")


type Day = Annotated[date, BeforeValidator(_day)]


class ItemQuery(Input):
    query: Name


class SimilarQuery(Input):
    customer: Name
    items: Annotated[str, Field(min_length=1, max_length=1_000)]


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


class OrderToRequest(Input):
    order_request_id: Id
    order: Annotated[str, Field(min_length=1, max_length=50_000)]
    """What a person reads before the approval, as `review_order` returned it: the order, and its review."""


class ReviewQuery(Input):
    order_request_id: Id
