"""The order book: which orders were placed, and under which idempotency key. It lasts as long as the process."""

import threading
from dataclasses import dataclass
from typing import Literal

from ordering.order_system import Placed
from ordering.orders.payload import ExternalOrder

FIRST_NUMBER = 901


class KeyReusedError(Exception):
    """The key belongs to an order with another content."""


@dataclass(frozen=True)
class PlacedOrder:
    number: str
    key: str
    order: ExternalOrder


class OrderBook:
    """Thread-safe."""

    def __init__(self) -> None:
        self._by_key: dict[str, PlacedOrder] = {}
        self._writing = threading.Lock()

    def place(self, order: ExternalOrder, key: str) -> Placed:
        with self._writing:
            before = self._by_key.get(key)
            if before is not None and before.order != order:
                raise KeyReusedError(f"the key was used for order {before.number}, which has another content")
            if before is None:
                before = PlacedOrder(f"SO-{FIRST_NUMBER + len(self._by_key):06}", key, order)
                self._by_key[key] = before
                status: Literal["placed", "placed_before"] = "placed"
            else:
                status = "placed_before"
        return Placed(order_number=before.number, status=status)

    @property
    def orders(self) -> list[PlacedOrder]:
        with self._writing:
            return list(self._by_key.values())

    def clear(self) -> None:
        with self._writing:
            self._by_key.clear()
