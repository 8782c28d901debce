"""What a plugin reads when Dify's API fails behind the daemon, in the daemon's words.

In: a failure that happened, or one that a script names as `api_fails`. Out: the sentence of the error event. All
words are recorded from a running daemon (2026-08-21).
"""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from devhost.errors import HostError, InvocationError
from devhost.protocol.wire import JsonObject

API = "http://127.0.0.1:5062/inner/api/invoke"
"""The address of the API in error messages, as in the recording; plugins see it nowhere else."""
CLOSED = "read tcp 127.0.0.1:39898->127.0.0.1:5062: use of closed network connection\nfailed to read system header"
"""The daemon closes the connection itself when a call has taken too long."""
NO_HEADER = "unexpected EOF\nfailed to read system header"
NO_DATA = "unexpected EOF\nfailed to read data"
LONGEST_CHUNK = 30 * 1024 * 1024

type Stage = Literal["unanswered", "refused", "broken"]
"""The API did not answer at all, answered with a status, or failed within its answer's stream."""


class ApiCallError(HostError):
    def __init__(self, stage: Stage, words: str = "EOF") -> None:
        super().__init__(words)
        self.stage = stage
        self.words = words

    @classmethod
    def http(cls, status: int, body: str) -> Self:
        return cls("refused", f"request failed with status code: {status} and respond with: {body}")

    @classmethod
    def invalid(cls, message: str) -> Self:
        """The API refuses the request: Dify's JSON for a ValueError."""
        said = {"code": "invalid_param", "message": message, "status": 400}
        return cls.http(400, json.dumps(said, separators=(",", ":")) + "\n")

    @classmethod
    def invalid_payload(cls, why: str) -> Self:
        """The API cannot read the request."""
        return cls.invalid(f"invalid payload: {why}")

    @classmethod
    def stream_error(cls, message: str) -> Self:
        """The stream contains an error of Dify, for a model or a tool."""
        return cls("broken", f"request failed: {message}")


class ApiStalledError(HostError):
    """The API says nothing more: the daemon's time limit ends the call."""


def plugin_failure(error: InvocationError) -> str:
    """What Dify says of an exception of a plugin, with its traceback."""
    said = {"args": error.details or {}, "error_type": error.error_type, "message": error.message}
    return f"req_id: 0123456789 PluginInvokeError: {json.dumps(said)}"


FAULTS: dict[str, tuple[int, ApiCallError | ApiStalledError | None]] = {
    "closes": (0, ApiCallError("unanswered")),
    "resets": (0, ApiCallError("unanswered")),
    "closes_mid_chunk": (1, ApiCallError("broken", NO_DATA)),
    "closes_between_chunks": (1, ApiCallError("broken", NO_HEADER)),
    "resets_mid_answer": (1, ApiCallError("broken", NO_HEADER)),
    "garbage": (0, ApiCallError("broken", "magic number mismatch: 1")),
    "null": (0, ApiCallError("broken", "data is nil")),
    "empty": (0, None),
    "stalls": (1, ApiStalledError()),
}
"""How many chunks arrive, and what comes then; None is a normal end."""


def _named(value: object) -> object:
    """`closes` and `http_500` are short for these mappings."""
    if not isinstance(value, str):
        return value
    name, _, status = value.partition("_")
    if name == "http" and status.isdecimal():
        return {"http": int(status)}
    return {"fault": value}


class ApiFault(BaseModel):
    """One of `FAULTS`, a status with a body, or an error within the stream after its first chunk."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    fault: str | None = None
    http: Annotated[int, Field(ge=300, le=599)] | None = None
    body: str = ""
    error: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [value for value in (self.fault, self.http, self.error) if value is not None]
        if len(given) != 1 or (self.fault is not None and self.fault not in FAULTS):
            raise PydanticCustomError("fault", "must be one of {known}", {"known": KNOWN})
        return self

    def through(self, answer: Iterator[JsonObject]) -> Iterator[JsonObject]:
        """The part of the answer that reaches the daemon; then the failure is raised."""
        if self.http is not None:
            raise ApiCallError.http(self.http, self.body)
        chunks, failure = FAULTS[self.fault] if self.fault else (1, ApiCallError.stream_error(self.error or ""))
        yield from islice(answer, chunks)
        if failure is not None:
            raise failure


KNOWN = ", ".join([*FAULTS, "http_500 or another status", "{http: 500, body: …}", "{error: …}"])
type Fault = Annotated[ApiFault, BeforeValidator(_named)]


def read_fault(value: object) -> ApiFault:
    """A failure as a script names it (`"closes"`, `"http_500"`, `{"error": TEXT}`); ValueError for anything else."""
    try:
        return ApiFault.model_validate(_named(value))
    except ValidationError as error:
        raise ValueError(f"{value!r} is not a failure of the API: it must be one of {KNOWN}") from error
