"""What may be done with order requests: each method is one transaction, except `request`, which has two.

They return values, and raise an `OrderError` for what they do not do: the sentences for a model are made elsewhere
(order_tools/results.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, Self

from pydantic_core import to_jsonable_python
from sqlalchemy import URL
from sqlalchemy.orm import Session
from tool_layer.address import database_url
from tool_layer.database import Database
from tool_layer.errors import SetupError
from tool_layer.run_steps import Turn, recorded

from .matching import LEAST, is_customer, likeness, sameness
from .order_system import NotPlacedError, OrderSystem, Placed, UnknownOutcomeError, is_address, to_external
from .orders import DraftStatus, Item, Order, OrderRequest
from .rules import Review, review
from .storage import Items, OrderRequests, prepare

PLUGIN_FOLDER = Path(__file__).resolve().parents[1]
CREDENTIAL = "order_system_url"
VARIABLE = "ORDER_ENTRY_DATABASE_URL"
DEFAULT_URL = "http://127.0.0.1:8737"
MOST_ITEMS = 5
MOST_SIMILAR = 3
REQUESTED_WITHIN = timedelta(days=14)
"""Customers order the same things again; an older order does not count as a duplicate."""


type Matter = Literal["other customer", "fixed", "incomplete", "not approved", "not placed", "unknown outcome"]
"""What keeps something from being done. `fixed`: it is placed, or may be placed already, and cannot change any more.
`not placed`: the order system has certainly not taken it. `unknown outcome`: the same call finds out later."""


@dataclass(eq=False)
class OrderError(Exception):
    matter: Matter
    request: OrderRequest
    why: str = ""
    """What is wrong with it, what the database holds in place of what was approved, or why it was not placed."""

    def __str__(self) -> str:
        return f"{self.matter}: order request {self.request.id}. {self.why}"


class UnknownRequestError(Exception):
    """The database has none with this id."""


@dataclass(frozen=True)
class Scored[T]:
    value: T
    likeness: float
    """0 to 100."""


@dataclass(frozen=True)
class Placement:
    request: OrderRequest
    is_new: bool
    """False if an earlier call has placed it."""


@dataclass(frozen=True)
class RunSteps:
    """Writes a row of the audit trail for each step of one call, beside that of the call itself."""

    database: Database
    tool: str
    turn: Turn

    def run[R](self, step: str, given: dict[str, object], work: Callable[[], R]) -> R:
        done: list[R] = []

        def shown() -> dict[str, object]:
            done.append(work())
            return {"status": "success", "result": to_jsonable_python(done[0])}

        recorded(self.database, f"{self.tool}: {step}", self.turn, given, shown)
        return done[0]


class OrderService:
    def __init__(self, url: URL, order_system: OrderSystem) -> None:
        self.database = Database(url, prepare)
        self._order_system = order_system

    @classmethod
    def by_credentials(cls, credentials: Mapping[str, object]) -> Self:
        """Raises SetupError: a credential cannot be used."""
        url = str(credentials.get(CREDENTIAL) or "").strip() or DEFAULT_URL
        if not is_address(url):
            raise SetupError(f"{CREDENTIAL} is not an address such as https://orders.example.")
        return cls(chosen_database(credentials), OrderSystem(url))

    def items_like(self, query: str) -> list[Scored[Item]]:
        """The most likely first."""
        with self.database.session() as session:
            items = Items(session).all()
        return _best([Scored(item, likeness(query, item.names)) for item in items], MOST_ITEMS)

    def similar(self, customer: str, items: Sequence[str]) -> list[Scored[OrderRequest]]:
        """Order requests of the customer that a new one would duplicate, the most alike first."""
        with self.database.session() as session:
            recent = OrderRequests(session).recent(REQUESTED_WITHIN)
            known = {item.code: item for item in Items(session).all()}
        of_customer = [request for request in recent if is_customer(customer, request.order)]
        return _best([Scored(each, sameness(items, each.order, known)) for each in of_customer], MOST_SIMILAR)

    def open_of(self, customer: str) -> list[OrderRequest]:
        """Order requests of the customer that are not placed yet, the newest first."""
        with self.database.session() as session:
            recent = OrderRequests(session).recent(REQUESTED_WITHIN)
        return [each for each in recent if each.status != "requested" and is_customer(customer, each.order)]

    def save(self, order: Order, status: DraftStatus, order_request_id: int | None = None) -> OrderRequest:
        """Raises: UnknownRequestError, OrderError."""
        with self.database.session() as session:
            if order_request_id is None:
                return OrderRequests(session).add(order, status)
            before = _existing(session, order_request_id)
            if before.order.customer_number != order.customer_number:
                raise OrderError("other customer", before)
            if before.status in {"requesting", "requested"}:
                raise OrderError("fixed", before)
            return OrderRequests(session).change(before, order, status)

    def review(self, order_request_id: int) -> Review:
        """Raises: UnknownRequestError."""
        with self.database.session() as session:
            return _reviewed(session, _existing(session, order_request_id))

    def request(self, order_request_id: int, approved: str, steps: RunSteps) -> Placement:
        """Places an order request with the order system: once, whatever happens on the way.

        Three steps, so that no transaction waits for the network: fix its content, send it, write down what became of
        it. A process that dies between them leaves it `requesting`, and the next call sends the same content with the
        same key.

        Raises: UnknownRequestError, OrderError.
        """
        given: dict[str, object] = {"order_request_id": order_request_id}
        before = steps.run("fix", {**given, "approved": approved}, lambda: self._fix(order_request_id, approved))
        if before.status == "requested":
            return Placement(before, is_new=False)
        external = to_external(before.order)
        key = before.idempotency_key
        try:
            placed = steps.run("send", given, lambda: self._order_system.place(external, key))
        except NotPlacedError as error:
            # If an earlier attempt ended without an answer, that one may have placed it.
            if before.status == "ready" and steps.run("release", given, lambda: self._settle(before)).status == "ready":
                raise OrderError("not placed", before, str(error)) from error
            raise OrderError("unknown outcome", before, str(error)) from error
        except UnknownOutcomeError as error:
            raise OrderError("unknown outcome", before, str(error)) from error
        return Placement(steps.run("settle", given, lambda: self._settle(before, placed)), placed.status == "placed")

    def _fix(self, order_request_id: int, approved: str) -> OrderRequest:
        """The order request as it was before it was marked as `requesting`; from then on its content cannot change."""
        with self.database.session() as session:
            request = _existing(session, order_request_id)
            found = _reviewed(session, request)
            if request.status in {"incomplete", "ready"} and not found.can_be_placed:
                raise OrderError("incomplete", request, " ".join(found.wrong))
            if not found.is_what(approved):
                raise OrderError("not approved", request, found.to_approve)
            if request.status == "ready":
                OrderRequests(session).mark(request, "requesting")
            return request

    def _settle(self, request: OrderRequest, placed: Placed | None = None) -> OrderRequest:
        """A draft again if it was not placed. What is placed stays so, whatever a call beside this one writes."""
        with self.database.session() as session:
            now = _existing(session, request.id)
            if now.status == "requested":
                return now
            if placed is None:
                return OrderRequests(session).mark(now, "ready")
            return OrderRequests(session).mark(now, "requested", placed.order_number)


def chosen_database(credentials: Mapping[str, object]) -> URL:
    return database_url(PLUGIN_FOLDER, credentials, variable=VARIABLE, file_name="order_entry.sqlite3")


def _existing(session: Session, order_request_id: int) -> OrderRequest:
    request = OrderRequests(session).get(order_request_id)
    if request is None:
        raise UnknownRequestError(f"There is no order request {order_request_id}.")
    return request


def _reviewed(session: Session, request: OrderRequest) -> Review:
    items = Items(session).by_code([line.item_code for line in request.order.lines])
    return review(request, items, datetime.now(UTC).date())


def _best[T](scored: Sequence[Scored[T]], most: int) -> list[Scored[T]]:
    """Equal scores stay in the given order."""
    return sorted((each for each in scored if each.likeness >= LEAST), key=lambda each: -each.likeness)[:most]
