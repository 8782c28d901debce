"""Conversations in which a transfer or a mail waits for the user's yes, and what reached the bank."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.host import Json, Step
from tests.support.run import Outcome, run
from tests.support.wire import calls, parameter, replies, tool

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
