"""What speaks against an order request, and what a person reads who approves it. Pure functions."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from .matching import folded
from .orders import Item, Line, Order, OrderRequest, Verdict


@dataclass(frozen=True)
class Review:
    """Of one version of an order request. What is wrong cannot be placed; a doubt can, once a person has read it."""

    request: OrderRequest
    wrong: tuple[str, ...]
    doubtful: tuple[str, ...]

    @property
    def findings(self) -> tuple[str, ...]:
        return self.wrong + self.doubtful

    @property
    def verdict(self) -> Verdict:
        if self.findings:
            return "change"
        return "pass"

    @property
    def can_be_placed(self) -> bool:
        return self.request.status == "ready" and not self.wrong

    @property
    def to_approve(self) -> str:
        """The order with what its review found, so that the one is not approved without the other."""
        return f"{self.request.order.in_words} Review: {' '.join(self.doubtful) or 'no concerns.'}"

    def is_what(self, approved: str) -> bool:
        """Whether a person approved this. A new review stops no order that is on its way."""
        if self.request.status == "ready":
            return approved.split() == self.to_approve.split()
        return " ".join(approved.split()).startswith(" ".join(self.request.order.in_words.split()))


def review(request: OrderRequest, items: Mapping[str, Item], today: date) -> Review:
    """`items`: those of the catalogue that the order names, by their codes."""
    return Review(request, tuple(_wrong(request.order, items, today)), tuple(_doubtful(request.order, items)))


def _wrong(order: Order, items: Mapping[str, Item], today: date) -> Iterator[str]:
    if order.delivery_date and date.fromisoformat(order.delivery_date) <= today:
        yield f"The delivery date {order.delivery_date} is not after today, {today}."
    for number, line in enumerate(order.lines, start=1):
        yield from (f"Line {number}: {fault}" for fault in _faults(line, items.get(line.item_code)))
    counted = Counter(line.item_code for line in order.lines if line.item_code)
    yield from (f"The item {code} stands in {count} lines." for code, count in counted.items() if count > 1)


def _faults(line: Line, item: Item | None) -> Iterator[str]:
    if not line.item_code:
        yield f"'{line.item_name}' has no item code yet."
    elif item is None:
        yield f"the catalogue has no item {line.item_code}."
    else:
        if folded(line.item_name) not in {folded(name) for name in item.names}:
            yield f"{item.code} is '{item.name}', not '{line.item_name}'."
        if line.unit not in item.units:
            yield f"{item.code} is sold by {' or '.join(item.units)}, not by {line.unit}."


def _doubtful(order: Order, items: Mapping[str, Item]) -> Iterator[str]:
    for number, line in enumerate(order.lines, start=1):
        item = items.get(line.item_code)
        if item is not None and line.quantity > item.usual_maximum:
            usual = f"the usual maximum of {item.usual_maximum}"
            yield f"Line {number}: {line.quantity} is more than {usual}; ask the customer."
        if line.confidence == "low":
            yield f"Line {number}: '{line.item_name}' is only a guess; ask the customer."
