"""The database: its tables, what a new one holds, and the rows of one transaction as values.

Instants are in UTC. JSON is `jsonb` on PostgreSQL, which can be searched and indexed there.
"""

import csv
import json
from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, String, func, insert, or_, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from tool_layer.database import JSON_COLUMN, empty, now
from tool_layer.run_steps import RunStep, make_table

from .orders import Item, Order, OrderRequest, Status

_CATALOGUE = Path(__file__).resolve().parents[1] / "catalogue"


class Base(DeclarativeBase):
    """Apart from the tables of `tool_layer`."""


class ItemRow(Base):
    __tablename__ = "items"

    code: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str]
    reading: Mapped[str]
    english_name: Mapped[str]
    pack_size: Mapped[str]
    units: Mapped[Any] = mapped_column(JSON_COLUMN)
    """A list."""
    usual_maximum: Mapped[int]


class OrderRequestRow(Base):
    __tablename__ = "order_requests"

    id: Mapped[int] = mapped_column(primary_key=True)
    version: Mapped[int]
    status: Mapped[str] = mapped_column(String(20))
    idempotency_key: Mapped[str] = mapped_column(unique=True)
    order_number: Mapped[str]
    customer_number: Mapped[str] = mapped_column(String(40), index=True)
    payload: Mapped[Any] = mapped_column(JSON_COLUMN)
    """An `Order`."""
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


def prepare(connection: Connection) -> None:
    """Make the tables that are missing, and fill new ones: with the catalogue, and two order requests of today."""
    make_table(connection)
    Base.metadata.create_all(connection)
    if not connection.scalar(select(func.count()).select_from(ItemRow)):
        _fill(connection)


def begin_again(connection: Connection) -> None:
    """As a new database; ids count from 1 again."""
    prepare(connection)
    empty(connection, RunStep.metadata, Base.metadata)
    _fill(connection)


def _fill(connection: Connection) -> None:
    with (_CATALOGUE / "items.csv").open(encoding="utf-8", newline="") as file:
        items = [{**row, "units": row["units"].split()} for row in csv.DictReader(file)]
    connection.execute(insert(ItemRow), [{**item, "usual_maximum": int(str(item["usual_maximum"]))} for item in items])
    for known in json.loads((_CATALOGUE / "orders.json").read_text(encoding="utf-8")):
        order = Order.model_validate(known["payload"])
        connection.execute(insert(OrderRequestRow).values(_new(order, known["status"], known["order_number"])))


def _new(order: Order, status: Status, order_number: str = "") -> dict[str, object]:
    return {
        "version": 1,
        "status": status,
        "idempotency_key": str(uuid4()),
        "order_number": order_number,
        "customer_number": order.customer_number,
        "payload": order.model_dump(mode="json"),
        "created_at": now(),
        "updated_at": now(),
    }


class Items:
    def __init__(self, session: Session) -> None:
        self._session = session

    def all(self) -> list[Item]:
        """In the order of their codes."""
        return [_item(row) for row in self._session.scalars(select(ItemRow).order_by(ItemRow.code))]

    def by_code(self, codes: Collection[str]) -> dict[str, Item]:
        """Those of the codes that the catalogue has."""
        found = self._session.scalars(select(ItemRow).where(ItemRow.code.in_(codes)))
        return {row.code: _item(row) for row in found}


class OrderRequests:
    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, order: Order, status: Status) -> OrderRequest:
        row = OrderRequestRow(**_new(order, status))
        self._session.add(row)
        return self._written(row)

    def get(self, order_request_id: int) -> OrderRequest | None:
        """Locked until the transaction ends."""
        query = select(OrderRequestRow).where(OrderRequestRow.id == order_request_id).with_for_update()
        row = self._session.scalar(query)
        if row is None:
            return None
        return _request(row)

    def change(self, request: OrderRequest, order: Order, status: Status) -> OrderRequest:
        row = self._session.get_one(OrderRequestRow, request.id)
        row.version = row.version + 1
        row.status = status
        row.customer_number = order.customer_number
        row.payload = order.model_dump(mode="json")
        return self._written(row)

    def mark(self, request: OrderRequest, status: Status, order_number: str = "") -> OrderRequest:
        row = self._session.get_one(OrderRequestRow, request.id)
        row.status = status
        row.order_number = order_number
        return self._written(row)

    def all(self) -> list[OrderRequest]:
        """In the order in which they were made."""
        return [_request(row) for row in self._session.scalars(select(OrderRequestRow).order_by(OrderRequestRow.id))]

    def recent(self, requested_within: timedelta) -> list[OrderRequest]:
        """Every one that is not placed yet, and those that were placed a short time ago; the newest first."""
        is_recent = OrderRequestRow.updated_at >= now() - requested_within
        query = select(OrderRequestRow).where(or_(OrderRequestRow.status != "requested", is_recent))
        return [_request(row) for row in self._session.scalars(query.order_by(OrderRequestRow.id.desc()))]

    def _written(self, row: OrderRequestRow) -> OrderRequest:
        row.updated_at = now()
        self._session.flush()
        return _request(row)


def _item(row: ItemRow) -> Item:
    return Item(row.code, row.name, row.reading, row.english_name, row.pack_size, tuple(row.units), row.usual_maximum)


def _request(row: OrderRequestRow) -> OrderRequest:
    return OrderRequest(
        id=row.id,
        version=row.version,
        status=row.status,  # type: ignore[arg-type] # only this module writes it
        order=Order.model_validate(row.payload),
        idempotency_key=row.idempotency_key,
        order_number=row.order_number,
    )
