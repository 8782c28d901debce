"""What an approval is bound to: the tool with its credential and settings, the arguments, and the files."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from internal.memory.records import CallRecord, RoundRecord, State, UserRecord
from internal.memory.state import encode
from prompt import template
from tests.support.host import Json, Step
from tests.support.local_http import served
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, results_in
from tests.support.wire import calls, parameter, replies, says, tool

SANDBOX, PRODUCTION = {"credential_id": "cred-sandbox"}, {"credential_id": "cred-production"}


def transfer(**more: Any) -> Json:  # noqa: ANN401 - fields of Dify's tool dict
    secret = {**parameter("key", "secret-input"), "form": "form"}
    return tool("transfer", parameter("amount"), {**parameter("bank"), "form": "form"}, secret, **more)


def bank(tools: Sequence[Json], steps: Sequence[Step], before: Outcome | None = None) -> Outcome:
    """One turn of a conversation in which every transfer needs the user's yes; after the first, the user says it."""
    params: dict[str, Any] = {"tools": list(tools), "approval_required": "transfer", "query": "Pay."}
    if before:
        params |= {"state": before.variables["state"], "approval": "yes", "query": "yes"}
    return run(steps, {"transfer": replies("done")}, params)


def sent(outcome: Outcome) -> list[tuple[Any, Any]]:
    """What reached a bank: the credential and the developer's value."""
    requests = outcome.tools.requests
    return [(request.get("credential_id"), request["tool_parameters"].get("bank")) for request in requests]


PAY = {name: calls((name, {"amount": "5"})) for name in ("transfer", "tools_transfer")}
TWO_BANKS = [{"runtime_parameters": {"bank": name}} for name in ("sandbox", "production")]


@pytest.mark.parametrize("differ", [[SANDBOX, PRODUCTION], TWO_BANKS], ids=["credential", "fixed value"])
@pytest.mark.parametrize(("name", "position"), [("transfer", 0), ("tools_transfer", 1)])
@pytest.mark.parametrize("is_turned", [False, True], ids=["same order", "turned order"])
def test_of_a_tool_that_a_node_has_twice_the_approved_one_runs(
    differ: list[Json], name: str, position: int, *, is_turned: bool
) -> None:
    tools = [transfer(**each) for each in differ]
    asked = bank(tools, [PAY[name]])

    done = bank(tools[::-1] if is_turned else tools, [ANSWER], asked)

    wanted = differ[position]
    values = wanted.get("runtime_parameters") or {}
    assert sent(asked) == []
    assert sent(done) == [(wanted.get("credential_id"), values.get("bank"))]
    (written,) = [call for message in done.model.prompts[0] for call in message.get("tool_calls") or ()]
    assert is_turned or written["function"]["name"] == name


@pytest.mark.parametrize(
    "differ", [[{}, {}], [{"runtime_parameters": {"key": each}} for each in ("s3cret-1", "s3cret-2")]],
    ids=["nothing", "a secret alone"],
)  # fmt: skip
def test_of_two_tools_that_cannot_be_told_apart_none_runs(differ: list[Json]) -> None:
    outcome = bank([transfer(**each) for each in differ], [PAY["transfer"], ANSWER])

    assert outcome.tool_results() == [template.DOUBLE_CANNOT_WAIT]
    assert (sent(outcome), outcome.stop_reason) == ([], "answered")


@pytest.mark.parametrize(
    "now", [[SANDBOX], [{"runtime_parameters": {"bank": "b"}}], [PRODUCTION, PRODUCTION], []],
    ids=["another credential", "another value", "a second one", "gone"],
)  # fmt: skip
def test_after_a_change_of_the_node_the_approved_call_is_not_run_and_can_be_asked_again(now: list[Json]) -> None:
    asked = bank([transfer(**PRODUCTION)], [PAY["transfer"]])
    tools = [transfer(**each) for each in now] or [tool("transfer", provider="acme/other/other")]

    again = bank(tools, [ANSWER], asked)

    assert sent(again) == []
    assert results_in(again.model.prompts[0]) == [template.APPROVED_CALL_CHANGED]


def test_a_secret_changes_nothing_that_can_be_seen() -> None:
    def asked(key: str) -> Outcome:
        return bank([transfer(runtime_parameters={"key": key})], [PAY["transfer"]])

    assert asked("1234").variables["pending_calls"] == asked("4321").variables["pending_calls"]


def test_a_waiting_call_of_an_older_state_is_not_run_and_can_be_asked_again() -> None:
    """Its id says nothing of the tool's settings and of files."""
    digest = hashlib.sha256(b'["acme/tools/tools","order",{"q":"tea"}]').hexdigest()[:8]
    waiting = CallRecord(id=f"call_1_{digest}", provider="acme/tools/tools", tool="order", arguments='{"q": "tea"}')
    before = State(
        strategy="gpt5_function_calling", entries=(UserRecord(text="Buy."), RoundRecord(calls=(waiting,))), last_call=1
    )
    params = {"approval_required": "*", "state": encode(before), "approval": "yes", "query": "yes"}

    outcome = run([calls(("order", {"q": "tea"}))], {"order": replies("x")}, params)

    assert outcome.tools.requests == []
    assert results_in(outcome.model.prompts[0])[-1] == template.APPROVED_CALL_CHANGED
    assert [call["id"] != waiting.id for call in outcome.variables["pending_calls"]] == [True]


class Files(BaseHTTPRequestHandler):
    """Serves files whose address is signed; without a signature they are gone."""

    def do_GET(self) -> None:
        self.send_response(200 if "sign=valid" in self.path else 403)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - as the base class has it
        """Say nothing."""


@pytest.fixture(scope="module")
def files() -> Iterator[str]:
    with served(Files) as address:
        yield address


def upload(address: str, number: int, sign: str = "valid", **more: Any) -> Json:  # noqa: ANN401 - fields of a file
    """A file as Dify hands it over."""
    url = f"{address}/files/{number}/file-preview?timestamp=1&nonce=2&sign={sign}"
    named = {"type": "document", "filename": "offer.pdf", "mime_type": "application/pdf", "extension": ".pdf"}
    return {"dify_model_identity": "__dify__file__", "url": url, **named, "size": 12, **more}


MAIL = calls(("mail", {"to": "a@b.example", "offer": "offer.pdf"}))


def post(
    steps: Sequence[Step], given: Sequence[Json] = (), before: Outcome | None = None, said: str = "yes"
) -> Outcome:
    mail = tool("mail", parameter("to"), parameter("offer", "file", required=True))
    params: dict[str, Any] = {"tools": [mail], "approval_required": "mail", "query": "Send it.", "files": list(given)}
    if before:
        params |= {"state": before.variables["state"], "approval": said, "query": said}
    return run(steps, {"mail": replies("sent")}, params)


def attached(outcome: Outcome) -> list[Mapping[str, Any]]:
    return [request["tool_parameters"]["offer"] for request in outcome.tools.requests]


def test_a_plain_yes_sends_the_file_that_was_shown(files: str) -> None:
    asked = post([MAIL], [upload(files, 1)])

    done = post([ANSWER], before=asked)

    assert attached(asked) == []
    assert attached(done) == [upload(files, 1)]
    assert not post([ANSWER], before=done, said="And now?").model.requests[0]["tools"]  # the file is forgotten


@pytest.mark.parametrize("change", [{"number": 2}, {"size": 13}], ids=["another upload", "another size"])
def test_a_file_that_is_attached_again_is_another_file_and_is_asked_again(files: str, change: Json) -> None:
    asked = post([MAIL], [upload(files, 1)])
    other = upload(files, **{"number": 1, **change})

    again = post([MAIL], [other], asked)
    done = post([ANSWER], before=again)

    assert attached(again) == []
    assert results_in(again.model.prompts[0])[-1] == template.APPROVED_CALL_CHANGED
    assert again.stop_reason == "approval_required"
    assert attached(done) == [other]


def test_a_file_whose_address_answers_no_more_has_to_be_attached_again(files: str) -> None:
    outcome = post([says("Attach it again.")], before=post([MAIL], [upload(files, 1, sign="expired")]))

    assert attached(outcome) == []
    assert results_in(outcome.model.prompts[0])[-1] == template.ATTACH_AGAIN.format(name="offer.pdf")


def test_after_a_rejection_the_call_can_be_made_again_with_the_same_file(files: str) -> None:
    elsewhere = calls(("mail", {"to": "c@d.example", "offer": "offer.pdf"}))
    again = post([elsewhere], before=post([MAIL], [upload(files, 1)]), said="no, to c@d.example")
    done = post([ANSWER], before=again)

    assert attached(again) == []
    assert attached(done) == [upload(files, 1)]
