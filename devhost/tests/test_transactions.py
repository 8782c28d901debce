"""A serverless plugin's backwards calls, as requests to the host."""

import http.client
import json
import queue
from collections.abc import Iterator

import pytest

from devhost.errors import PluginLostError
from devhost.limits import HostLimits
from devhost.process.transports import serverless as transactions
from devhost.process.transports.serverless import PATH, Transactions
from devhost.protocol.wire import JsonObject, answer_envelope
from support.waiting import PATIENCE, MovableClock


class Host:
    """Transactions, and what they handed on."""

    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[JsonObject] = queue.SimpleQueue()
        limits = HostLimits(transaction_bytes=1000, transaction_heartbeat_seconds=0.05)
        self.noted: list[str] = []
        self.transactions = Transactions(limits, self.calls.put, self.noted.append)
        self.transactions.start()
        self.transactions.expect("s")

    def post(self, body: str, *, session: str = "s", path: str = PATH) -> http.client.HTTPResponse:
        address = self.transactions.url.removeprefix("http://")
        connection = http.client.HTTPConnection(address, timeout=PATIENCE)
        connection.request("POST", path, body, {"Dify-Plugin-Session-ID": session})
        return connection.getresponse()

    def ask(self) -> http.client.HTTPResponse:
        """A call that has arrived."""
        response = self.post(call())
        assert self.calls.get(timeout=PATIENCE)["data"]["data"]["backwards_request_id"] == "r"
        return response

    def answer(self, event: str, data: JsonObject | None = None) -> None:
        self.transactions.answer(answer_envelope("s", "r", event, "", data))


def call(session: str = "s", kind: str = "invoke") -> str:
    data = {"type": "llm", "backwards_request_id": "r", "request": {"model": "m"}}
    return json.dumps({"event": "session", "session_id": session, "data": {"type": kind, "data": data}}) + "\n\n"


@pytest.fixture
def host() -> Iterator[Host]:
    host = Host()
    yield host
    host.transactions.stop()


def test_a_call_that_is_cut_off_hangs(host: Host) -> None:
    with host.post("x" * 1001) as response:
        assert [response.readline() for _ in range(3)] == [b"\n"] * 3
        assert host.noted == [
            "a backwards call of 1,001 bytes hangs: the daemon cuts it off at 1,000 and never answers it"
        ]
        assert host.calls.empty()
        host.transactions.hang_up("s")


def test_a_call_that_takes_too_long_is_ended_without_an_end_event(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = MovableClock(monkeypatch, transactions)
    with host.ask() as response:
        host.answer("response", {"n": 1})
        first = next(line for line in response if line.strip())
        assert json.loads(first)["data"]["event"] == "response"
        clock.move(301)
        assert response.read().strip() == b""


def test_silence_is_filled_with_blank_lines(host: Host) -> None:
    with host.ask() as response:
        assert [response.readline() for _ in range(3)] == [b"\n"] * 3
        host.answer("end")


@pytest.mark.parametrize(
    ("body", "session", "words"),
    [
        (call("other"), "other", "session not found"),
        (call(), "other", "not a backwards call of the session in its header"),
        (call(kind="stream"), "s", "not a backwards call"),
        ("{", "s", "the transaction is not valid JSON"),
        ("x" * 1001, "other", "session not found"),
    ],
)
def test_requests_that_are_refused(host: Host, body: str, session: str, words: str) -> None:
    with host.post(body, session=session) as response:
        text = response.read().decode()
        assert (response.status, words in text) == (400, True)
        assert "session_id" not in json.loads(text)
    with host.post(call(), path="/invoke") as response:
        assert response.status == 404


def test_an_answer_that_is_cut_off_is_incomplete_for_the_plugin(host: Host) -> None:
    with host.ask() as response:
        host.answer("response", {"n": 1})
        host.transactions.hang_up("s")
        with pytest.raises(http.client.IncompleteRead):
            response.read()
    with host.post(call()) as response:
        assert "session not found" in response.read().decode()


def test_a_second_answer_is_refused(host: Host) -> None:
    with host.ask() as response:
        host.answer("end")
        response.read()
    with pytest.raises(PluginLostError, match="no longer waits"):
        host.answer("response", {"n": 2})
