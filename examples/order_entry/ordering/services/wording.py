"""Order requests in lines of text: for the model's next turn, and for the report."""

from collections.abc import Iterator

from ordering.orders.payload import LinePayload, OrderPayload, StoredOrder
from ordering.orders.rules import Findings, Item
from ordering.values.results import Judgement

STATUS_IN_WORDS = {
    "incomplete": "a draft with open questions",
    "ready": "a draft that can be requested",
    "requesting": "sent to the order system, without an answer yet",
    "requested": "placed",
}


def order_lines(payload: OrderPayload) -> str:
    return "\n".join(f"- {_line(line)}" for line in payload.lines)


def described(order: StoredOrder) -> str:
    """One line about the order request and one for each of its lines."""
    number = f" as {order.order_number}" if order.order_number else ""
    head = f"Order request {order.id}, version {order.version}: {STATUS_IN_WORDS[order.status]}{number}"
    return f"{head}. {customer(order.payload)}; {delivery(order.payload)}.\n{order_lines(order.payload)}"


def customer(payload: OrderPayload) -> str:
    branch = f", {payload.branch}" if payload.branch else ""
    return f"Customer {payload.customer_number}, {payload.customer_name}{branch}"


def delivery(payload: OrderPayload) -> str:
    return f"delivery on {payload.delivery_date}" if payload.delivery_date else "delivery as soon as possible"


def ordered(payload: OrderPayload) -> str:
    return f"{customer(payload)}; {delivery(payload)}; {'; '.join(map(_line, payload.lines))}."


def to_approve(payload: OrderPayload, found: Findings, judgement: Judgement | None) -> str:
    """The order with what its review found, in one line, so that nobody approves the one without the other."""
    concerns = judgement.concerns if judgement is not None and judgement.verdict == "change" else ()
    return f"{ordered(payload)} Review: {' '.join([*found.doubtful, *concerns]) or 'no concerns.'}"


def item_in_words(item: Item) -> str:
    return f"{item.code}: {item.name} ({item.english_name}), {item.pack_size}, sold by {' or '.join(item.units)}"


def _line(line: LinePayload) -> str:
    return " ".join(_parts(line))


def _parts(line: LinePayload) -> Iterator[str]:
    yield line.item_code or "(no item code yet)"
    yield f"{line.item_name}:"
    yield f"{line.quantity} {line.unit}"
    if line.pack_size:
        yield f"({line.pack_size})"
