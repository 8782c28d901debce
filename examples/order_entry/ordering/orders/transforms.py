"""From what a model sends to what is stored, and from there to what the order system takes. Pure functions."""

from collections.abc import Mapping

from ordering.values.inputs import Draft, DraftLine
from ordering.values.vocabulary import Unit

from .payload import ExternalLine, ExternalOrder, LinePayload, OrderPayload

UNIT_CODES: Mapping[Unit, str] = {"piece": "PC", "pack": "PK", "case": "CS"}
"""The order system's."""


def to_payload(draft: Draft) -> OrderPayload:
    """The id and the status are columns of their own, not part of the payload."""
    return OrderPayload(
        customer_number=draft.customer_number,
        customer_name=draft.customer_name,
        branch=draft.branch or "",
        delivery_date="" if draft.delivery_date is None else draft.delivery_date.isoformat(),
        note=draft.note or "",
        lines=tuple(_line_payload(line) for line in draft.lines),
    )


def to_external(payload: OrderPayload) -> ExternalOrder:
    """Without what is the wholesaler's own: names, notes, pack sizes and how sure the model was."""
    return ExternalOrder(
        customer=payload.customer_number,
        branch=payload.branch or None,
        deliver_on=payload.delivery_date or None,
        lines=tuple(
            ExternalLine(item=line.item_code, quantity=line.quantity, unit_code=UNIT_CODES[line.unit])
            for line in payload.lines
        ),
    )


def _line_payload(line: DraftLine) -> LinePayload:
    return LinePayload(
        item_code=line.item_code or "",
        item_name=line.item_name,
        quantity=line.quantity,
        unit=line.unit,
        pack_size=line.pack_size or "",
        confidence=line.confidence,
    )
