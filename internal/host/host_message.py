"""An error message of the host, taken out of its wrappings.

In: what a failed backwards call reports: a bare text in which the daemon, Dify's API and the plugin that failed have
wrapped each other's messages. Out: the innermost message, and what the wrappings tell about it. The words are those of
the daemon, Dify's API and the SDK: docs/host-facts.md, "Failed calls"; the recordings are in
tests/fixtures/dify/daemon-golden.jsonl.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

_DEEPEST = 8
"""Wrappings that are taken off; Dify's own are three."""
_MAX_REASON_LENGTH = 40_000
"""Characters; of a longer message its beginning and its end are kept, half of these each."""

_CALL_FAILED = re.compile(r"(?:invoke|read) (?:llm model|tool response|[a-z ]{1,40}?) failed: ")
_PASSED_ON = re.compile(
    r"request failed: |req_id: ?\S{0,100} |Plugin\w{1,60}(?:Error|Exception): |tool invoke error: "
    r"|failed to execute tool [^\s:][^:\n]{0,200}: |failed to execute tool: "
)
_STATUS_LINE = re.compile(r"request failed with status code: (\d{3}) and respond with: ?")
# From Go's net and http packages, the daemon's reader and checks, and the SDK's limits.
_HOSTS_OWN = re.compile(
    r'(?:Post|Get) "|(?:dial|read|write) tcp\b|(?:unexpected )?EOF\b|data is nil|magic number mismatch'
    r"|data length is too long|failed to read (?:data|system header)|unmarshal backwards invoke request failed"
    r"|unsupported invoke type|permission denied, you need to enable|invocation exited without response"
    r"|Failed to parse response: "
)
_MAX_PATH_LENGTH = 100


@dataclass(frozen=True)
class HostMessage:
    """An unwrapped message."""

    reason: str
    """The innermost message; of an unusually long one its beginning and end."""
    error_types: tuple[str, ...] = ()
    """Names of the errors that wrapped each other, the innermost first."""
    status: int | None = None
    """Of the HTTP answer that was the failure."""
    is_hosts_own: bool = False
    """Whether the message is the host's own (its transport, status or refusal), not the provider's or tool's."""
    names_opaque_body: bool = False


def unwrap(message: str) -> HostMessage:
    """Take a message out of its wrappings. Linear in its length, whatever stands in it."""
    read = HostMessage(message)
    for _ in range(_DEEPEST):
        inner = next((peeled for peel in _PEELS if (peeled := peel(read)) is not None), None)
        if inner is None:
            break
        read = inner
    reason = read.reason.strip()
    field = _opaque_field(reason)
    if field is not None:
        return replace(read, reason=f"{field} was refused", is_hosts_own=True, names_opaque_body=True)
    is_hosts_own = read.is_hosts_own or _HOSTS_OWN.match(reason) is not None
    return replace(read, reason=_shortened(reason), is_hosts_own=is_hosts_own)


def _peel_call(read: HostMessage) -> HostMessage | None:
    """The daemon could not make the call, or not read the answer; an error that the answer holds is not its own."""
    found = _CALL_FAILED.match(read.reason)
    if found is None or not read.reason[found.end() :].strip():
        return None
    return replace(read, reason=read.reason[found.end() :], is_hosts_own=True)


def _peel_name(read: HostMessage) -> HostMessage | None:
    found = _PASSED_ON.match(read.reason)
    if found is None or not read.reason[found.end() :].strip():
        return None
    return replace(read, reason=read.reason[found.end() :], is_hosts_own=False)


def _peel_status(read: HostMessage) -> HostMessage | None:
    """The status is noted; the message stays, but for a message inside of what came with it."""
    found = _STATUS_LINE.match(read.reason)
    if found is None or read.status is not None:
        return None
    return replace(read, status=int(found[1]), is_hosts_own=True)


def _peel_json(read: HostMessage) -> HostMessage | None:
    """A JSON object at the end that has a message of its own, as errors of Dify and of providers have."""
    begin = read.reason.find("{")
    try:
        wrapped = json.loads(read.reason[begin:]) if begin >= 0 else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(wrapped, dict):
        return None
    error_type, inner = wrapped.get("error_type"), wrapped.get("message")
    types = (error_type, *read.error_types) if isinstance(error_type, str) else read.error_types
    if isinstance(inner, str) and inner.strip():
        return replace(read, reason=inner, error_types=types, is_hosts_own=False)
    return replace(read, reason=types[0], error_types=types, is_hosts_own=False) if error_type else None


_PEELS: tuple[Callable[[HostMessage], HostMessage | None], ...] = (_peel_call, _peel_name, _peel_status, _peel_json)


def _opaque_field(reason: str) -> str | None:
    """The path of the opaque body that a refusal names; nothing else of the refusal, since decoders quote the value.

    Only a body of a request's messages: a tool may speak of a column or field of that name.
    """
    position = reason.find("opaque_body")
    start = max(0, position - _MAX_PATH_LENGTH)
    if position < 0 or "prompt_messages" not in reason[start:position]:
        return None
    path = re.search(r"[\w.\[\]]*$", reason[start:position])
    return f"{path[0] if path else ''}opaque_body"


def _shortened(text: str) -> str:
    half = _MAX_REASON_LENGTH // 2
    return text if len(text) <= _MAX_REASON_LENGTH else f"{text[:half]} … {text[-half:]}"
