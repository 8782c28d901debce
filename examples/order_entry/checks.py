"""What order entry's database and the order system must hold after each scenario."""

import socket
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from order_desk.conversation import Conversation, FrontEndData
from order_desk.desk import NEEDS_APPROVAL, Desk
from order_desk.order_system_server import LOOPBACK, OrderSystemServer
from order_desk.sources import MOST_OF_A_FILE, MOST_OF_A_PAGE, text_in
from ordering.services import CREDENTIAL, PLUGIN_FOLDER
from ordering.storage import OrderRequests, begin_again, prepare
from sqlalchemy import URL
from tool_layer.database import Database
from tool_layer.run_steps import RunStep, steps_of

from devhost import Host, Run
from devhost.case import Case
from devhost.hosting import ModelOptions
from examples.runner.playing import conversation
from examples.runner.world import Credentials, Played

DOWN = "order-system-down"
FORM = "order-form"
"""The scenario that needs what only the chat's back end has: an attachment, a page, and a branch."""
CITED = [(2, "Paper napkins folded in four,40,pack"), (3, "Hot cup 240 ml white,4,case")]
"""Lines and words of the form."""
SAMPLES = PLUGIN_FOLDER / "samples"
SEEDED = 2
"""Order requests that are there before a scenario."""

type Quantities = Mapping[str, int]
"""By item code; a line without a code has the code ""."""


@dataclass(frozen=True)
class Promise:
    """What a scenario leaves behind."""

    number: int
    """Of the order request."""
    status: str
    version: int
    quantities: Quantities
    steps: Counter[str]
    """How often each tool ran, and each step of a tool that has several."""
    error: str = ""
    """In the message of the one call that fails."""


def _steps(*more: str) -> Counter[str]:
    return Counter(["search_items", "find_similar_orders", *more])


NAPKINS = {"NP-200": 40}
DRAFTED = ("save_order_draft", "review_order")
REQUESTED = ("request_order", "request_order: fix", "request_order: send")
PLACED = (*REQUESTED, "request_order: settle")
DATE = "Invalid parameters for save_order_draft: delivery_date"
UNREACHABLE = "the order system cannot be reached"
PROMISES = {
    "script": Promise(3, "ready", 2, {"NP-200": 10, "CP-240": 4}, _steps("search_items", "save_order_draft", *DRAFTED)),
    "duplicate": Promise(1, "ready", 2, {"CP-240": 4, "CL-080": 3}, _steps("search_items", "save_order_draft")),
    "invalid-parameters": Promise(3, "ready", 1, {"LB-700": 20}, _steps(*["save_order_draft"] * 2), DATE),
    "approved": Promise(3, "requested", 1, NAPKINS, _steps(*DRAFTED, *PLACED)),
    "rejected": Promise(3, "requested", 2, {"NP-200": 20}, _steps(*DRAFTED, *DRAFTED, *PLACED)),
    FORM: Promise(
        *(3, "ready", 1, {"NP-200": 40, "CP-240": 4, "CL-080": 2}), _steps("search_items", "save_order_draft")
    ),
    DOWN: Promise(3, "ready", 1, NAPKINS, _steps(*DRAFTED, *REQUESTED, "request_order: release"), UNREACHABLE),
}


class OrderEntry:
    def __init__(self, url: URL, order_system: OrderSystemServer, down: str) -> None:
        """`down`: the address of an order system that cannot be reached."""
        self._database = Database(url, prepare)
        self._order_system = order_system
        self._down = self._address = down
        self._chat = self._new_chat("")

    @property
    def credentials(self) -> Credentials:
        url = self._database.url.render_as_string(hide_password=False)
        return {"orders": {"database_url": url, CREDENTIAL: self._address}}

    def begin(self, scenario: str) -> None:
        with Database(self._database.url, begin_again).session():
            self._order_system.clear()
        self._chat = self._new_chat(scenario)
        self._address = self._down if scenario == DOWN else self._order_system.url

    def _new_chat(self, scenario: str) -> Conversation:
        return Conversation(self._database.url, f"chat-{scenario}")

    def play(self, case: Case, host: Host) -> tuple[Run, ...]:
        """The form is for the chat's desk; all others are conversations with the agent alone."""
        if not self._chat.id.endswith(FORM) or not case.has_script:
            return conversation(case, host)
        runs: list[Run] = []
        strategy = case.played.name
        desk = Desk(self._chat, host, case.script, strategy, ModelOptions(scripted=True), ended=runs.append)
        form = self._chat.attach("order-form.csv", text_in(SAMPLES / "order-form.csv", MOST_OF_A_FILE))
        seen = FrontEndData(
            customer_number="C-3001",
            customer_name="Café Lindqvist",
            branch_org_id="ORG-3001-2",
            attachments=(form,),
            dom_snapshot=text_in(SAMPLES / "item-page.html", MOST_OF_A_PAGE),
        )
        desk.say(case.script.query, seen)
        return tuple(runs)

    def problems(self, played: Played) -> Iterator[str]:
        yield from (run.error.message for run in played.runs if run.error is not None)
        promise = PROMISES[played.scenario]
        yield from self._in_the_orders(promise)
        yield from self._in_the_audit_trail(promise, played)
        orders = self._order_system.orders.values()
        placed = [{line.item: line.quantity for line in order.lines} for order in orders]
        if placed != [promise.quantities] * (promise.status == "requested"):
            yield f"the order system has {placed}"
        cited = [(each.line, each.words) for said in self._chat.messages() for each in said.back_end.file_annotations]
        if cited != CITED * (played.scenario == FORM):
            yield f"the annotations are {cited}"
        leaked = [run.outputs.text for run in played.runs if '"status"' in run.outputs.text]
        yield from (f"a tool's result is shown as it is: {text}" for text in leaked)

    def _in_the_orders(self, promise: Promise) -> Iterator[str]:
        with self._database.session() as session:
            requests = {request.id: request for request in OrderRequests(session).all()}
        if len(requests) != max(SEEDED, promise.number):
            yield f"there are {len(requests)} order requests"
        request = requests[promise.number]
        quantities = {line.item_code: line.quantity for line in request.order.lines}
        found = request.status, request.version, quantities, bool(request.order_number)
        if found != (promise.status, promise.version, promise.quantities, promise.status == "requested"):
            yield f"order request {request.id} is {found}"

    def _in_the_audit_trail(self, promise: Promise, played: Played) -> Iterator[str]:
        steps = steps_of(self._database)
        if (ran := Counter(step.tool for step in steps)) != promise.steps:
            yield f"run_steps has {dict(ran)}"
        if unfinished := [step.tool for step in steps if step.ended_at is None]:
            yield f"run_steps without an end: {', '.join(unfinished)}"
        conversations = {step.conversation for step in steps}
        if len(conversations) != 1 or "" in conversations:
            yield f"run_steps belong to the conversations {sorted(conversations)}"
        yield from _in_the_turns(steps, played)
        failed = [step.output["result"]["message"] for step in steps if step.output.get("status") == "error"]
        if len(failed) != bool(promise.error) or any(promise.error not in message for message in failed):
            yield f"these calls failed: {failed}"


def _in_the_turns(steps: Sequence[RunStep], played: Played) -> Iterator[str]:
    """The turn. Without a back end the steps of `request_order` have none: the panel cannot fill it in."""
    for turn, run in enumerate(played.runs, start=1):
        ran = [each["tool"] for each in run.outputs.variables["tool_runs"] if each["status"] in {"ok", "error"}]
        expected = sorted(tool for tool in ran if tool != NEEDS_APPROVAL)
        recorded = sorted(step.tool for step in steps if step.turn == turn)
        if recorded != expected:
            yield f"run_steps of turn {turn} are of {recorded}; the agent called {expected}"


@contextmanager
def world(folder: Path, database: URL | None = None) -> Iterator[OrderEntry]:
    url = database or URL.create("sqlite", database=str(folder / "order_entry.sqlite3"))
    with OrderSystemServer() as server, closing(socket.socket()) as deaf:
        deaf.bind((LOOPBACK, 0))  # taken, but it does not listen
        yield OrderEntry(url, server, f"http://{LOOPBACK}:{deaf.getsockname()[1]}")
