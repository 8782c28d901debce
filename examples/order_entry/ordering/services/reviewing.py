"""Reviews a draft: the rules that need no reader, and a second reader's judgement once there is one.

The tool applies the rules. The second reader is another agent run, which a back end starts (`order_desk`); it hands
its judgement to `record`, and from then on the tool returns it as well.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from tool_layer.database import Database

from ordering.orders.payload import StoredOrder
from ordering.orders.rules import findings
from ordering.storage.items import Items
from ordering.storage.judgements import Judgements
from ordering.storage.orders import OrderRequests
from ordering.values.results import Judgement, ReviewerOutput, ReviewerResult

from .wording import described, to_approve


@dataclass(frozen=True)
class ToRead:
    """What a second reader gets."""

    order_request_id: int
    version: int
    text: str


class Reviewing:
    def __init__(self, database: Database) -> None:
        self._database = database

    def review(self, order_request_id: int) -> ReviewerResult:
        """Raises RefusedError: there is no such order request."""
        with self._database.session() as session:
            order = OrderRequests(session).get(order_request_id)
            items = Items(session).by_code([line.item_code for line in order.payload.lines])
            judgement = Judgements(session).of(order)
        found = findings(order.payload, items, datetime.now(UTC).date())
        rejects = found.all or (judgement is not None and judgement.verdict == "change")
        output = ReviewerOutput(
            order_request_id=order.id,
            version=order.version,
            verdict="change" if rejects else "pass",
            findings=found.all,
            second_reader=judgement,
        )
        can_be_placed = order.status == "ready" and not found.wrong
        text = to_approve(order.payload, found, judgement) if can_be_placed else None
        return ReviewerResult(message=_message(order, output, text), reviewer_output=output, order_to_approve=text)

    def to_read(self, order_request_id: int) -> ToRead:
        with self._database.session() as session:
            order = OrderRequests(session).get(order_request_id)
        return ToRead(order.id, order.version, described(order))

    def record(self, read: ToRead, judgement: Judgement) -> bool:
        """False if the order request has changed since it was read: the judgement is of another version then."""
        with self._database.session() as session:
            order = OrderRequests(session).get(read.order_request_id)
            if order.version != read.version:
                return False
            Judgements(session).put(order, judgement)
        return True


def _message(order: StoredOrder, output: ReviewerOutput, text: str | None) -> str:
    rules = " ".join(output.findings) or "no rule asks for a change."
    said = [f"Order request {order.id}, version {order.version}: {rules}"]
    if (reader := output.second_reader) is not None:
        concerns = " ".join(reader.concerns) or "no concerns."
        said.append(f"The second reader ({reader.confidence} confidence) says {reader.verdict}: {concerns}")
    if text is not None:
        said.append("To place it, call request_order with order_to_approve, unchanged, as order.")
    return " ".join(said)
