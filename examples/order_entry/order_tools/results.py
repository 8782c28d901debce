"""What a service returned or refused → what the model reads: a sentence for its next turn, and a few named values.

What has no value is left out of the JSON (tool_layer/envelope.py).
"""

from collections.abc import Sequence

from ordering.matching import SAME
from ordering.orders import Item, OrderRequest, Verdict
from ordering.rules import Review
from ordering.services import OrderError, Placement, Scored
from pydantic import BaseModel, ConfigDict
from tool_layer.envelope import Result

MOST_OPEN = 10
"""Open orders that a model reads."""
STATUS_IN_WORDS = {
    "incomplete": "a draft with open questions",
    "ready": "a draft that can be requested",
    "requesting": "sent to the order system, without an answer yet",
    "requested": "placed",
}


class SalesResult(Result):
    saved_order_request_id: int | None = None
    referenced_order_request_id: int | None = None
    """An order request that was there before, and is the one that the customer means."""


class OrderEntryResult(Result):
    output_report: str | None = None
    """What was ordered, in lines that a person may read."""


class ReviewerOutput(BaseModel):
    model_config = ConfigDict(frozen=True)

    order_request_id: int
    version: int
    verdict: Verdict
    findings: tuple[str, ...]


class ReviewerResult(Result):
    reviewer_output: ReviewerOutput | None = None
    order_to_approve: str | None = None
    """What `request_order` takes as `order`; None for a draft that cannot be placed as it is."""


def items_found(query: str, found: Sequence[Scored[Item]]) -> SalesResult:
    if not found:
        return SalesResult(
            message=f"No item is like '{query}'. Try a shorter name, or another word for the same thing; if nothing is "
            "found, ask the customer."
        )
    lines = "\n".join(f"- {_item(each.value)}; likeness {each.likeness:.0f} of 100" for each in found)
    advice = "If more than one of them fits, ask the customer which one is meant."
    return SalesResult(message=f"Items like '{query}', the most likely first:\n{lines}\n{advice}")


def open_found(found: Sequence[OrderRequest]) -> SalesResult:
    """`found` is the newest first. One alone is the one that the customer means."""
    if not found:
        return SalesResult(message="This customer has no open order.")
    text = "\n\n".join(described(each) for each in found[:MOST_OPEN])
    message = f"Open orders of this customer: {len(found)}, the newest first.\n\n{text}"
    if len(found) > 1:
        return SalesResult(message=message)
    return SalesResult(message=message, referenced_order_request_id=found[0].id)


def similar_found(found: Sequence[Scored[OrderRequest]]) -> SalesResult:
    if not found:
        return SalesResult(
            message="No open or recent order of this customer is like it: a new draft duplicates nothing."
        )
    text = "\n\n".join(f"Likeness {each.likeness:.0f} of 100. {described(each.value)}" for each in found)
    best = found[0].value
    if found[0].likeness < SAME:
        return SalesResult(message=f"Somewhat like it, probably other orders:\n\n{text}")
    return SalesResult(
        message=f"Order request {best.id} is probably the same order. Use or change it, and save no second one, unless "
        f"the customer says that this is another order.\n\n{text}",
        referenced_order_request_id=best.id,
    )


def saved(request: OrderRequest) -> SalesResult:
    advice = "review_order returns the text with which request_order places it."
    if request.status == "incomplete":
        advice = "Ask the customer what is missing, then save the whole draft again under this id."
    message = f"Saved. {described(request)}\nIt is not requested. {advice}"
    return SalesResult(message=message, saved_order_request_id=request.id)


def reviewed(review: Review) -> ReviewerResult:
    request = review.request
    found = " ".join(review.findings) or "no rule asks for a change."
    place = " To place it, call request_order with order_to_approve, unchanged, as order."
    advice = place if review.can_be_placed else ""
    return ReviewerResult(
        message=f"Order request {request.id}, version {request.version}: {found}{advice}",
        reviewer_output=ReviewerOutput(
            order_request_id=request.id, version=request.version, verdict=review.verdict, findings=review.findings
        ),
        order_to_approve=review.to_approve if review.can_be_placed else None,
    )


def placed(placement: Placement) -> OrderEntryResult:
    request = placement.request
    order = placement.request.order
    when = "now" if placement.is_new else "already, by an earlier call; nothing was placed twice"
    return OrderEntryResult(
        message=f"Order request {request.id} is placed as {request.order_number}, {when}.",
        output_report=f"Order {request.order_number}\n{order.customer}; {order.delivery}\n{_lines(request)}",
    )


def refusal(error: OrderError) -> str:
    request = error.request
    why = error.why
    name = f"Order request {request.id}"
    new_draft = "Save a new draft with order_request_id null"
    match error.matter:
        case "other customer":
            return f"{name} is that of customer {request.order.customer_number}. {new_draft}."
        case "fixed" if request.order_number:
            return (
                f"{name} is placed as {request.order_number} and cannot change any more. {new_draft} if the customer "
                "wants something else as well."
            )
        case "fixed":
            return (
                f"{name} may be placed already: the order system has not answered. Call request_order with the same "
                "text to find out; it places nothing twice."
            )
        case "incomplete":
            saved_as = "It is saved as incomplete. " if request.status == "incomplete" else ""
            return f"{name} cannot be placed yet. {saved_as}{why}"
        case "not approved":
            return (
                f"Nothing was placed: the order or its review is another one now. {name} is: {why} If that is what the "
                "customer wants, call request_order with exactly this text; else save the draft first."
            )
        case "not placed":
            return f"Nothing was placed: {why}. {name} is kept as a draft. Tell the customer; do not save it again."
        case "unknown outcome":
            return (
                f"It is not known whether order request {request.id} was placed: {why}. Tell the customer, and call "
                "request_order with the same text later; it places nothing twice."
            )


def described(request: OrderRequest) -> str:
    """One line about the order request, and one for each of its lines."""
    number = f" as {request.order_number}" if request.order_number else ""
    head = f"Order request {request.id}, version {request.version}: {STATUS_IN_WORDS[request.status]}{number}"
    return f"{head}. {request.order.customer}; {request.order.delivery}.\n{_lines(request)}"


def _lines(request: OrderRequest) -> str:
    return "\n".join(f"- {line.in_words}" for line in request.order.lines)


def _item(item: Item) -> str:
    return f"{item.code}: {item.name} ({item.english_name}), {item.pack_size}, sold by {' or '.join(item.units)}"
