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

from .wording import described


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
        found = findings(order.payload, items, datetime.now(UTC).date()).all
        rejects = found or (judgement is not None and judgement.verdict == "change")
        output = ReviewerOutput(
            order_request_id=order.id,
            version=order.version,
            verdict="change" if rejects else "pass",
            findings=found,
            second_reader=judgement,
        )
        return ReviewerResult(message=_message(order, output), reviewer_output=output)

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


def _message(order: StoredOrder, output: ReviewerOutput) -> str:
    head = f"Order request {order.id}, version {order.version}: "
    rules = " ".join(output.findings) or "no rule asks for a change."
    if output.second_reader is None:
        return f"{head}{rules} A second reader has not judged this version."
    concerns = " ".join(output.second_reader.concerns) or "no concerns"
    said = f"The second reader ({output.second_reader.confidence} confidence) says {output.second_reader.verdict}"
    return f"{head}{rules} {said}: {concerns}"
