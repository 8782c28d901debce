"""A message of the assistant as lines for the terminal: the text, and what the back end added."""

from collections.abc import Iterator

from .messages import ChatMessage


def shown(message: ChatMessage) -> Iterator[str]:
    added = message.data.back_end
    yield message.text
    if added.report is not None:
        yield f"\n{added.report}"
    ids = {
        "saved order request": added.saved_order_request_id,
        "referenced order request": added.referenced_order_request_id,
    }
    yield from (f"· {name} {number}" for name, number in ids.items() if number is not None)
    for annotation in added.annotations:
        judgement = annotation.judgement
        concerns = " ".join(judgement.concerns) or "no concerns"
        which = f"order request {annotation.order_request_id}, version {annotation.version}"
        yield f"· second reader of {which}: {judgement.verdict} ({judgement.confidence} confidence): {concerns}"
