"""The lines of a trace, which are written during the run and validated strictly when they are read."""

import contextlib
import fcntl
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Annotated, Any, Literal, Self, TextIO

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, TypeAdapter

from devhost.errors import TraceError
from devhost.models.backend import ModelDescription
from devhost.node.outputs.run import Run, report
from devhost.process.session import Side, Watcher
from devhost.protocol.wire import JsonObject
from devhost.text import MASK, Secrets, open_file, read_file, worded
from devhost.trace.flow import FlowTraceLine, TimedLine

# The lines of a trace. The first line is a `TraceHeader`. Every other line has the seconds since then as `at`.
#
# A message line has a message between the host and a plugin. An end line has the result of one session of the
# strategy. A notice is a sentence about the plugins before a run, and a remark is a sentence about the model after a
# run. A printed line has text that a plugin printed. A serving line says which backwards call the session of a tool
# answers. The lines of `trace/flow.py` are the events of a flow, between the messages of its agents.


class FrozenLine(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class TraceHeader(FrozenLine):
    trace: Literal["devhost"]
    version: Literal[1]
    started: AwareDatetime
    command: Literal["run", "chat", "flow"] = "run"
    example: str = ""
    description: str = ""
    strategy: str = ""
    transport: str = ""
    model: Annotated[ModelDescription, PlainSerializer(lambda model: model.facts)] = ModelDescription(
        "", "", "", scripted=False
    )
    query: str | None = None
    """The question; None in a conversation, in which each request has its question."""


@dataclass(frozen=True)
class MessageLine(TimedLine):
    side: Annotated[Side, Field(alias="from")]
    plugin: str
    message: JsonObject
    event: Literal["message"] = "message"


def _run_of(printed: object) -> object:
    """Complete a run as `--json` prints it, which has neither messages nor calls."""
    if isinstance(printed, dict):
        return {**printed, "outputs": printed, "messages": ()}
    return printed


@dataclass(frozen=True)
class EndLine(TimedLine):
    session_id: str
    asked: Mapping[str, int]
    outcome: Annotated[Run, BeforeValidator(_run_of)]
    """The run without its messages and calls, which are lines of their own."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """The reasons for failed tool calls, by the id of the request."""
    event: Literal["end"] = "end"


@dataclass(frozen=True)
class SentenceLine(TimedLine):
    sentence: str
    event: Literal["notice", "remark"]


@dataclass(frozen=True)
class PrintedLine(TimedLine):
    plugin: str
    text: str
    event: Literal["printed"] = "printed"


@dataclass(frozen=True)
class ServingLine(TimedLine):
    session_id: str
    request_id: str
    event: Literal["serving"] = "serving"


type TraceLine = Annotated[
    MessageLine | PrintedLine | ServingLine | EndLine | SentenceLine | FlowTraceLine,
    Field(discriminator="event"),
]


_LINE: TypeAdapter[TraceLine] = TypeAdapter(TraceLine, config=ConfigDict(defer_build=True))


@dataclass(frozen=True)
class Trace:
    header: TraceHeader
    lines: tuple[TraceLine, ...]
    cut_off: bool
    """Whether the last line is incomplete, because the process that wrote it was killed."""

    @property
    def notices(self) -> tuple[str, ...]:
        """The notices without duplicates, because a chat that restarts its plugins repeats them."""
        told = (line for line in self.lines if isinstance(line, SentenceLine) and line.event == "notice")
        return tuple(dict.fromkeys(line.sentence for line in told))


MOST_BYTES = 256 * 1024 * 1024
"""The maximum size of a trace that is read, which takes several times as much memory.

A long run writes about ten MiB.
"""


def read_trace(file: Path, only: re.Pattern[bytes] | None = None) -> Trace:
    """Read a trace. Raises TraceError, with the line's number, for an invalid file. The last line may be cut off.

    With `only`, lines after the header that do not match the pattern are left out without being parsed.
    """
    with worded(lambda why: TraceError(f"{file} cannot be read: {why}")):
        *written, rest = read_file(file, MOST_BYTES).split(b"\n")
    first = b""
    others: list[bytes] = []
    if written:
        first, *others = written
    cut_off = bool(rest.strip())
    header = _read(TraceHeader.model_validate, first, f"{file}, line 1: not a trace of devhost")
    numbered = [(number, text) for number, text in enumerate(others, start=2) if text.strip()]
    if only is not None:
        numbered = [(number, line) for number, line in numbered if only.search(line)]
    lines = (
        _read(_LINE.validate_python, text, f"{file}, line {number}: not a line of a trace") for number, text in numbered
    )
    return Trace(header, tuple(lines), cut_off)


def _read[T](validate: Callable[[object], T], text: bytes, problem: str) -> T:
    try:
        value = json.loads(text)  # this also accepts half a surrogate pair
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{problem}: not valid JSON: {error}") from error
    with worded(lambda why: TraceError(f"{problem}: {why}")):
        return validate(value)


class TraceWriter(Watcher):
    """Writes each line at once, so that the trace of a killed run has all messages up to that moment.

    It is a context manager. Leaving it raises TraceError if the file could not be written to its end.
    """

    def __init__(self, file: Path, secrets: Secrets | None = None, facts: Mapping[str, Any] | None = None) -> None:
        """Open the file. `secrets` are known values; without them, every credential is hidden where it is sent.

        `facts` are the fields of the `TraceHeader` that the command knows.

        Raises TraceError if the file cannot be written, or if it exists and is not a trace.
        """
        self._hides: Callable[[object], bool] = (lambda _value: True) if secrets is None else secrets.is_secret
        secrets = secrets or Secrets()
        self._path = file
        self._secrets = secrets
        self._writing = threading.Lock()
        self._failure: OSError | None = None
        with worded(lambda why: TraceError(f"--trace {file} cannot be written: {why}")):
            _refuse_to_destroy(file)
            # UTF-8 cannot encode half a surrogate pair, so it is written as a JSON escape.
            self._file: TextIO | None = file.open("a", encoding="utf-8", errors="backslashreplace")
            if file.is_file():  # any number of runs may write to a device
                _take(self._file, file)
                self._file.truncate(0)
        self._began = time.monotonic()
        header = TraceHeader(trace="devhost", version=1, started=datetime.now(UTC), **secrets.masked(dict(facts or {})))
        self._append(header.model_dump(mode="json"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exception: type[BaseException] | None, *_: object) -> None:
        with self._writing:
            if self._file is not None:
                self._file.close()
            self._file = None
        if self._failure is not None and exception is None:
            raise TraceError(f"--trace {self._path} is incomplete: {self._failure.strerror}")

    def crossed(self, side: Side, plugin: str, message: JsonObject) -> None:
        # Heartbeats and the manifest are left out: they belong to no session, and only some transports have them.
        if message.get("event") not in {None, "heartbeat"}:
            hidden = {"message": _without_credentials(message, self._hides)}
            self._write("message", hidden, **{"from": side, "plugin": plugin})

    def printed(self, plugin: str, text: str) -> None:
        self._write("printed", {"text": text}, plugin=plugin)

    def serving(self, session_id: str, request_id: str) -> None:
        self._write("serving", {}, session_id=session_id, request_id=request_id)

    def ended(self, session_id: str, run: Run, model: ModelDescription) -> None:
        ended = {"asked": dict(run.asked), "failures": run.calls.failures, "outcome": report(run, model)}
        self._write("end", ended, session_id=session_id)

    def notice(self, sentence: str) -> None:
        self._write("notice", {"sentence": sentence})

    def remark(self, sentence: str) -> None:
        if sentence:
            self._write("remark", {"sentence": sentence})

    def flow(self, line: FlowTraceLine) -> None:
        """Write an event of a flow. The line's own time is not kept."""
        written: JsonObject = _LINE.dump_python(line, mode="json", exclude={"at", "event"}, fallback=str)
        self._write(line.event, written)

    def _write(self, event: str, told: JsonObject, **plain: str) -> None:
        """Write a line. `told` may contain secrets."""
        hidden = self._secrets.masked(told)
        with self._writing:  # keeps the lines in the order of their times
            at = round(time.monotonic() - self._began, 6)
            self._append({"at": at, "event": event, **plain, **hidden})

    def _append(self, line: JsonObject) -> None:
        if self._file is None:
            return  # the file is closed already; a plugin may still be printing
        try:
            self._file.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")
            self._file.flush()
        except OSError as error:  # a full disk must not end the run that is being watched
            self._failure = error
            file = self._file
            self._file = None
            with contextlib.suppress(OSError):  # what it still buffers cannot be written either
                file.close()


# The writer of a trace holds an exclusive lock on it, which is released when its process ends for any reason. Readers
# request a shared lock. Any number of readers get it at the same time, unless there is a writer.


def is_written(file: Path) -> bool:
    """Return whether a process is still writing this trace."""
    try:
        with open_file(file) as trace:
            return _has_writer(trace)
    except OSError:
        return False


def _take(trace: TextIO, file: Path) -> None:
    """Lock the trace for its writer. Raises TraceError if another writer holds the lock."""
    while True:
        try:
            fcntl.flock(trace, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # a reader holds it for a moment, or a writer holds it
            if _has_writer(trace):
                trace.close()
                sentence = f"--trace {file} is being written by another run"
                raise TraceError(f"{sentence}: name another file, or wait until that run has ended") from None
            time.sleep(0.001)
        except OSError:  # a file system without locks
            return
        else:
            return


def _has_writer(trace: IO[Any]) -> bool:
    try:
        fcntl.flock(trace, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(trace, fcntl.LOCK_UN)
    return False


def _refuse_to_destroy(file: Path) -> None:
    """Raise TraceError for a file that is not an older trace, such as the script of the run."""
    if not file.is_file():
        return  # the file does not exist yet, or it is a device, which keeps nothing
    with file.open("rb") as existing:
        beginning = existing.read(100)
    if beginning and not re.match(rb'\s*\{\s*"trace"\s*:\s*"devhost"', beginning):
        raise TraceError(f"--trace {file} exists and is not a trace of devhost: name a new file, or an older trace")


def _without_credentials(message: JsonObject, hides: Callable[[object], bool]) -> JsonObject:
    match message:
        case {"data": {"credentials": dict(credentials)} as data}:
            hidden = {key: MASK if hides(value) else value for key, value in credentials.items()}
            return {**message, "data": {**data, "credentials": hidden}}
        case _:
            return message
