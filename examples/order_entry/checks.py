"""What order entry's database and the order system must hold after each scenario."""

import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from order_system_server.book import OrderBook
from order_system_server.server import LOOPBACK, OrderSystemServer
from ordering.application import Application
from ordering.order_system import HttpOrderSystem
from ordering.storage.orders import OrderRequests
from ordering.storage.tables import Base
from sqlalchemy import URL, func, select
from tool_layer.run_steps import Base as RunSteps
from tool_layer.run_steps import steps_of

from examples.runner.world import Credentials, Played

PROVIDER = "orders"
DOWN = "order-system-down"

type Quantities = Mapping[str, int]
"""By item code; a line without a code has the code ""."""


@dataclass(frozen=True)
class Promise:
    """What a scenario leaves behind."""

    order_request_id: int
    status: str
    version: int
    quantities: Quantities
    calls: Mapping[str, int]
    """How often each tool ran."""
    error: str = ""
    """In the message of the one call that fails."""
    placed: tuple[Quantities, ...] = field(default=())
    """In the order system's book."""


LOOKED_UP = {"search_items": 1, "find_similar_orders": 1}
PROMISES = {
    "script": Promise(
        3,
        "ready",
        2,
        {"NP-200": 10, "CP-240": 4},
        {"search_items": 2, "find_similar_orders": 1, "save_order_draft": 2, "review_order": 1},
    ),
    "duplicate": Promise(
        1,
        "ready",
        2,
        {"CP-240": 4, "CL-080": 3},
        {"search_items": 2, "find_similar_orders": 1, "save_order_draft": 1},
    ),
    "invalid-parameters": Promise(
        3,
        "ready",
        1,
        {"LB-700": 20},
        {**LOOKED_UP, "save_order_draft": 2},
        error="Invalid parameters for save_order_draft: delivery_date",
    ),
    "approved": Promise(
        3,
        "requested",
        1,
        {"NP-200": 40},
        {**LOOKED_UP, "save_order_draft": 1, "review_order": 1, "request_order": 1},
        placed=({"NP-200": 40},),
    ),
    "rejected": Promise(
        3,
        "requested",
        2,
        {"NP-200": 20},
        {**LOOKED_UP, "save_order_draft": 2, "review_order": 2, "request_order": 1},
        placed=({"NP-200": 20},),
    ),
    DOWN: Promise(
        3,
        "ready",
        1,
        {"NP-200": 40},
        {**LOOKED_UP, "save_order_draft": 1, "review_order": 1, "request_order": 1},
        error="Nothing was placed: the order system cannot be reached",
    ),
}
SEEDED = 2
"""Order requests that are there before a scenario."""


class OrderEntry:
    def __init__(self, folder: Path, book: OrderBook, up: str, down: str) -> None:
        """`up`, `down`: addresses of an order system that answers, and of one that cannot be reached."""
        self._file = folder / "order_entry.sqlite3"
        self._book = book
        self._up, self._down = up, down
        self._address = up
        url = URL.create("sqlite", database=str(self._file))
        self._application = Application.over(url, HttpOrderSystem(up))

    @property
    def credentials(self) -> Credentials:
        return {PROVIDER: {"database_url": f"sqlite:///{self._file}", "order_system_url": self._address}}

    def begin(self, scenario: str) -> None:
        self._file.unlink(missing_ok=True)
        self._application = Application.over(self._application.database.url, HttpOrderSystem(self._up))
        with self._application.database.session():
            self._book.clear()
        self._address = self._down if scenario == DOWN else self._up

    def rows(self) -> int:
        tables = [*Base.metadata.sorted_tables, *RunSteps.metadata.sorted_tables]
        with self._application.database.session() as session:
            return sum(session.scalar(select(func.count()).select_from(table)) or 0 for table in tables)

    def problems(self, played: Played) -> Iterator[str]:
        yield from (run.error.message for run in played.runs if run.error is not None)
        promise = PROMISES[played.scenario]
        yield from self._in_the_orders(promise)
        yield from self._in_the_audit_trail(promise)
        placed = tuple({line.item: line.quantity for line in order.order.lines} for order in self._book.orders)
        if placed != promise.placed:
            yield f"the order system has {placed}, not {promise.placed}"
        leaked = [run.outputs.text for run in played.runs if '"status"' in run.outputs.text]
        yield from (f"a tool's result is shown as it is: {text}" for text in leaked)

    def _in_the_orders(self, promise: Promise) -> Iterator[str]:
        with self._application.database.session() as session:
            orders = {order.id: order for order in OrderRequests(session).all()}
        if len(orders) != max(SEEDED, promise.order_request_id):
            yield f"there are {len(orders)} order requests"
        order = orders.get(promise.order_request_id)
        if order is None:
            yield f"order request {promise.order_request_id} is missing"
            return
        found = order.status, order.version, {line.item_code: line.quantity for line in order.payload.lines}
        if found != (promise.status, promise.version, promise.quantities):
            yield f"order request {order.id} is {found}"
        if bool(order.order_number) != bool(promise.placed):
            yield f"order request {order.id} has the order number '{order.order_number}'"

    def _in_the_audit_trail(self, promise: Promise) -> Iterator[str]:
        steps = steps_of(self._application.database)
        if (calls := Counter(step.tool for step in steps)) != promise.calls:
            yield f"run_steps has {dict(calls)}"
        if unfinished := [step.tool for step in steps if step.ended_at is None]:
            yield f"run_steps without an end: {', '.join(unfinished)}"
        conversations = {step.conversation for step in steps}
        if len(conversations) != 1 or "" in conversations:
            yield f"run_steps belong to the conversations {sorted(conversations)}"
        failed = [step.output["result"]["message"] for step in steps if step.output["status"] == "error"]
        if len(failed) != bool(promise.error) or any(promise.error not in message for message in failed):
            yield f"these calls failed: {failed}"


@contextmanager
def world(folder: Path) -> Iterator[OrderEntry]:
    with OrderSystemServer(OrderBook()) as server, closing(socket.socket()) as deaf:
        deaf.bind((LOOPBACK, 0))  # taken, but it does not listen
        yield OrderEntry(folder, server.book, server.url, f"http://{LOOPBACK}:{deaf.getsockname()[1]}")
