"""What can be said of a draft without a second reader.

In: a stored payload, the items of the catalogue, the day. Out: what is to change, and what the customer is to be asked.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from ordering.values.vocabulary import Unit

from .folding import folded
from .payload import LinePayload, OrderPayload


@dataclass(frozen=True)
class Item:
    """Of the catalogue."""

    code: str
    name: str
    reading: str
    """In kana: people write names as they are spoken."""
    english_name: str
    pack_size: str
    units: tuple[Unit, ...]
    usual_maximum: int
    """Of one line, in any unit."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.code, self.name, self.reading, self.english_name)


@dataclass(frozen=True)
class Findings:
    """Sentences. What is wrong cannot be placed; a doubt can, once the customer was asked."""

    wrong: tuple[str, ...]
    doubtful: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        return self.wrong + self.doubtful


def findings(payload: OrderPayload, items: Mapping[str, Item], today: date) -> Findings:
    return Findings(wrong=tuple(_wrong(payload, items, today)), doubtful=tuple(_doubtful(payload, items)))


def _wrong(payload: OrderPayload, items: Mapping[str, Item], today: date) -> Iterator[str]:
    if payload.delivery_date and date.fromisoformat(payload.delivery_date) <= today:
        yield f"The delivery date {payload.delivery_date} is not after today, {today}."
    for number, line in enumerate(payload.lines, start=1):
        yield from (f"Line {number}: {fault}" for fault in _faults(line, items.get(line.item_code)))
    counted = Counter(line.item_code for line in payload.lines if line.item_code)
    yield from (f"The item {code} stands in {count} lines." for code, count in counted.items() if count > 1)


def _doubtful(payload: OrderPayload, items: Mapping[str, Item]) -> Iterator[str]:
    for number, line in enumerate(payload.lines, start=1):
        item = items.get(line.item_code)
        if item is not None and line.quantity > item.usual_maximum:
            yield (
                f"Line {number}: {line.quantity} is more than the usual maximum of {item.usual_maximum}; "
                "ask the customer."
            )
        if line.confidence == "low":
            yield f"Line {number}: '{line.item_name}' is only a guess; ask the customer."


def _faults(line: LinePayload, item: Item | None) -> Iterator[str]:
    if not line.item_code:
        yield f"'{line.item_name}' has no item code yet."
        return
    if item is None:
        yield f"the catalogue has no item {line.item_code}."
        return
    if folded(line.item_name) not in {folded(name) for name in item.names}:
        yield f"{item.code} is '{item.name}', not '{line.item_name}'."
    if line.unit not in item.units:
        yield f"{item.code} is sold by {' or '.join(item.units)}, not by {line.unit}."
