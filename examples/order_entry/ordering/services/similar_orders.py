"""Finds order requests that a new one would duplicate."""

import re
from collections.abc import Sequence
from datetime import timedelta
from statistics import fmean

from tool_layer.database import Database

from ordering.orders.folding import folded
from ordering.orders.matching import LEAST, likeness
from ordering.orders.payload import StoredOrder
from ordering.orders.rules import Item
from ordering.storage.items import Items
from ordering.storage.orders import OrderRequests
from ordering.values.inputs import SimilarQuery
from ordering.values.results import SalesResult

from .wording import described

REQUESTED_WITHIN = timedelta(days=14)
"""Customers order the same things again; an older order does not count as a duplicate."""
SAME_ORDER = 80.0
MOST = 3
_BETWEEN_ITEMS = re.compile(r"[,、;；\n]")

type Scored = tuple[float, StoredOrder]


class SimilarOrders:
    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, asked: SimilarQuery) -> SalesResult:
        with self._database.session() as session:
            orders = OrderRequests(session).recent(REQUESTED_WITHIN)
            items = {item.code: item for item in Items(session).all()}
        wanted = [part.strip() for part in _BETWEEN_ITEMS.split(asked.items) if part.strip()]
        of_customer = [order for order in orders if _is_customer(asked.customer, order)]
        scored = [(_sameness(wanted, order, items), order) for order in of_customer]
        alike = sorted((each for each in scored if each[0] >= LEAST), key=lambda each: -each[0])[:MOST]
        return _told(alike)


def _is_customer(asked: str, order: StoredOrder) -> bool:
    """A number has to be right but for its spelling: that of another customer differs in one digit."""
    number = _without_hyphens(order.payload.customer_number)
    if number == _without_hyphens(asked).replace(" ", "") or number in _without_hyphens(asked).split():
        return True
    name, branch = order.payload.customer_name, order.payload.branch
    return not any(character.isdigit() for character in asked) and (
        likeness(asked, [name, f"{name} {branch}"]) >= SAME_ORDER
    )


def _without_hyphens(text: str) -> str:
    """`"C-1042"` → `"c1042"`, in every width."""
    return folded(text).replace("-", "")


def _sameness(wanted: Sequence[str], order: StoredOrder, items: dict[str, Item]) -> float:
    """Both ways: how well each wanted item is met by a line, and each line by a wanted item; 0 to 100."""
    named = [_names(line.item_code, line.item_name, items) for line in order.payload.lines]
    if not wanted:
        return 0.0
    met = fmean(max(likeness(want, names) for names in named) for want in wanted)
    covered = fmean(max(likeness(want, names) for want in wanted) for names in named)
    return (met + covered) / 2


def _names(code: str, name: str, items: dict[str, Item]) -> tuple[str, ...]:
    return (*items[code].names, name) if code in items else (name,)


def _told(alike: Sequence[Scored]) -> SalesResult:
    if not alike:
        return SalesResult(
            message="No open or recent order of this customer is like it: a new draft duplicates nothing."
        )
    text = "\n\n".join(f"Likeness {score:.0f} of 100. {described(order)}" for score, order in alike)
    score, best = alike[0]
    if score < SAME_ORDER:
        return SalesResult(message=f"Somewhat like it, probably other orders:\n\n{text}")
    return SalesResult(
        message=f"Order request {best.id} is probably the same order. Use or change it, and save no second one, unless "
        f"the customer says that this is another order.\n\n{text}",
        referenced_order_request_id=best.id,
    )
