"""The repository of second readers' judgements: one at most of each version of an order request."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from ordering.orders.payload import StoredOrder
from ordering.values.results import Judgement

from .tables import JudgementRow


class Judgements:
    def __init__(self, session: Session) -> None:
        self._session = session

    def of(self, order: StoredOrder) -> Judgement | None:
        row = self._row(order)
        return None if row is None else Judgement.model_validate(row.judgement)

    def put(self, order: StoredOrder, judgement: Judgement) -> None:
        """In place of an earlier one."""
        row = self._row(order)
        if row is None:
            row = JudgementRow(order_request_id=order.id, version=order.version)
            self._session.add(row)
        row.judgement = judgement.model_dump(mode="json")

    def _row(self, order: StoredOrder) -> JudgementRow | None:
        return self._session.scalar(
            select(JudgementRow).where(JudgementRow.order_request_id == order.id, JudgementRow.version == order.version)
        )
