"""The errors that a plugin gets when Dify's API fails behind the daemon.

Failures are real, or a script simulates them with `api_fails`. All error messages were recorded from a running daemon
(2026-08-21).
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
"""The address of the API in recorded error messages. Plugins see this address nowhere else."""
CLOSED = "read tcp 127.0.0.1:39898->127.0.0.1:5062: use of closed network connection\nfailed to read system header"
"""The error for a call that takes too long: the daemon closes its own connection to the API."""
NO_HEADER = "unexpected EOF\nfailed to read system header"
NO_DATA = "unexpected EOF\nfailed to read data"
LONGEST_CHUNK = 30 * 1024 * 1024

type Stage = Literal["unanswered", "refused", "broken"]
"""The API did not answer at all, answered with a status, or failed within its answer's stream."""


class ApiCallError(HostError):
    """A call to Dify's API failed."""

    def __init__(self, stage: Stage, words: str = "EOF") -> None:
        super().__init__(words)
        self.stage = stage
        self.words = words

    @classmethod
    def http(cls, status: int, body: str) -> Self:
        return cls("refused", f"request failed with status code: {status} and respond with: {body}")

    @classmethod
    def invalid(cls, message: str) -> Self:
        """Returns the error for a request that the API refuses, with Dify's JSON for a ValueError."""
        said = {"code": "invalid_param", "message": message, "status": 400}
        return cls.http(400, json.dumps(said, separators=(",", ":")) + "\n")

    @classmethod
    def invalid_payload(cls, why: str) -> Self:
        """Returns the error for a request that the API cannot parse."""
        return cls.invalid(f"invalid payload: {why}")

    @classmethod
    def stream_error(cls, message: str) -> Self:
        """Returns the error for a stream in which Dify reports an error from a model or a tool."""
        return cls("broken", f"request failed: {message}")


class ApiStalledError(HostError):
    """The API sends nothing more, and the daemon's time limit ends the call."""


def plugin_failure(error: InvocationError) -> str:
    """Returns Dify's message about an exception of a plugin, with its traceback."""
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
"""For each failure, the number of chunks that arrive and the error that follows. None means a normal end."""


def _named(value: object) -> object:
    """Expands a short form such as `closes` or `http_500` to a mapping."""
    if not isinstance(value, str):
        return value
    name, _, status = value.partition("_")
    if name == "http" and status.isdecimal():
        return {"http": int(status)}
    return {"fault": value}


class ApiFault(BaseModel):
    """A simulated failure: one of `FAULTS`, a status with a body, or an error after the first chunk of the stream."""

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
        """Yields the part of the answer that reaches the daemon, then raises the failure."""
        if self.http is not None:
            raise ApiCallError.http(self.http, self.body)
        chunks, failure = FAULTS[self.fault] if self.fault else (1, ApiCallError.stream_error(self.error or ""))
        yield from islice(answer, chunks)
        if failure is not None:
            raise failure


KNOWN = ", ".join([*FAULTS, "http_500 or another status", "{http: 500, body: …}", "{error: …}"])
type Fault = Annotated[ApiFault, BeforeValidator(_named)]


def read_fault(value: object) -> ApiFault:
    """Parses a failure from a script: `"closes"`, `"http_500"` or `{"error": TEXT}`. Raises ValueError otherwise."""
    try:
        return ApiFault.model_validate(_named(value))
    except ValidationError as error:
        raise ValueError(f"{value!r} is not a failure of the API: it must be one of {KNOWN}") from error
