"""The repository of order requests."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from sqlalchemy import or_, select
from sqlalchemy.orm import Session
from tool_layer.errors import RefusedError

from ordering.orders.payload import OrderPayload, StoredOrder
from ordering.values.vocabulary import OrderStatus

from .tables import OrderRequestRow


class OrderRequests:
    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, payload: OrderPayload, status: OrderStatus) -> StoredOrder:
        now = _now()
        row = OrderRequestRow(
            version=1,
            status=status,
            idempotency_key=str(uuid4()),
            order_number="",
            customer_number=payload.customer_number,
            payload=payload.model_dump(mode="json"),
            created_at=now,
            updated_at=now,
        )
        self._session.add(row)
        self._session.flush()
        return _stored(row)

    def get(self, order_request_id: int) -> StoredOrder:
        """Locked until the transaction ends.

        Raises:
            RefusedError: There is none with this id.
        """
        return _stored(self._row(order_request_id))

    def change(self, order_request_id: int, payload: OrderPayload, status: OrderStatus) -> StoredOrder:
        row = self._row(order_request_id)
        row.version += 1
        row.customer_number = payload.customer_number
        row.payload = payload.model_dump(mode="json")
        return self._updated(row, status)

    def mark(self, order_request_id: int, status: OrderStatus, order_number: str = "") -> StoredOrder:
        row = self._row(order_request_id)
        row.order_number = order_number
        return self._updated(row, status)

    def all(self) -> list[StoredOrder]:
        """In the order in which they were made."""
        return [_stored(row) for row in self._session.scalars(select(OrderRequestRow).order_by(OrderRequestRow.id))]

    def recent(self, requested_within: timedelta) -> list[StoredOrder]:
        """Every one that is not placed yet, and those that were placed a short time ago; the newest first."""
        query = (
            select(OrderRequestRow)
            .where(
                or_(
                    OrderRequestRow.status != "requested",
                    OrderRequestRow.updated_at >= _now() - requested_within,
                )
            )
            .order_by(OrderRequestRow.id.desc())
        )
        return [_stored(row) for row in self._session.scalars(query)]

    def _row(self, order_request_id: int) -> OrderRequestRow:
        query = select(OrderRequestRow).where(OrderRequestRow.id == order_request_id).with_for_update()
        row = self._session.scalar(query)
        if row is None:
            raise RefusedError(f"There is no order request {order_request_id}.")
        return row

    def _updated(self, row: OrderRequestRow, status: OrderStatus) -> StoredOrder:
        row.status, row.updated_at = status, _now()
        self._session.flush()
        return _stored(row)


def _stored(row: OrderRequestRow) -> StoredOrder:
    return StoredOrder(
        id=row.id,
        version=row.version,
        status=row.status,  # type: ignore[arg-type] # only this module writes it
        idempotency_key=row.idempotency_key,
        order_number=row.order_number,
        payload=OrderPayload.model_validate(row.payload),
    )


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)
