"""Makes the tables that are missing, and fills new ones: with the catalogue, and with two order requests of today."""

import csv
import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from uuid import uuid4

from sqlalchemy import Connection, func, insert, select, text
from tool_layer.run_steps import RunStep, make_table

from ordering.orders.payload import OrderPayload

from .tables import Base, ItemRow, OrderRequestRow

_CATALOGUE = Path(__file__).resolve().parents[2] / "catalogue"


def prepare(connection: Connection) -> None:
    make_table(connection)
    Base.metadata.create_all(connection)
    if not connection.scalar(select(func.count()).select_from(ItemRow)):
        _fill(connection)


def begin_again(connection: Connection) -> None:
    """As a new database; ids count from 1 again."""
    prepare(connection)
    names = [RunStep.__tablename__, *(table.name for table in reversed(Base.metadata.sorted_tables))]
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"TRUNCATE {', '.join(names)} RESTART IDENTITY"))
    else:
        for name in names:
            connection.execute(text(f"DELETE FROM {name}"))  # noqa: S608 - a name of ours
    _fill(connection)


def _fill(connection: Connection) -> None:
    connection.execute(insert(ItemRow), _items())
    now = datetime.now(UTC).replace(tzinfo=None)
    for order in _orders():
        payload = OrderPayload.model_validate(order["payload"])
        connection.execute(
            insert(OrderRequestRow).values(
                version=1,
                status=order["status"],
                idempotency_key=str(uuid4()),
                order_number=order["order_number"],
                customer_number=payload.customer_number,
                payload=payload.model_dump(mode="json"),
                created_at=now,
                updated_at=now,
            )
        )


@cache
def _items() -> list[dict[str, object]]:
    with (_CATALOGUE / "items.csv").open(encoding="utf-8", newline="") as file:
        return [
            {**row, "units": row["units"].split(), "usual_maximum": int(row["usual_maximum"])}
            for row in csv.DictReader(file)
        ]


def _orders() -> list[dict[str, object]]:
    orders: list[dict[str, object]] = json.loads((_CATALOGUE / "orders.json").read_text(encoding="utf-8"))
    return orders
