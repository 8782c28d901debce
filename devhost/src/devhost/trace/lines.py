"""The lines of a trace: read strictly, written during the run, and read while they are written."""

import contextlib
import fcntl
import json
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, Self, TextIO

from pydantic import AwareDatetime, ConfigDict, Field, TypeAdapter, ValidationError

from devhost.errors import HostError, TraceError
from devhost.models.backend import ModelDescription
from devhost.node.outputs.outputs import Finding, LogEntry, NodeOutputs
from devhost.node.outputs.run import Run, RunError, report
from devhost.process.session import Side, Watcher
from devhost.protocol.wire import JsonObject
from devhost.text import MASK, Secrets, describe, open_file
from devhost.trace.flow import FlowTraceLine, Line, Timed

# The lines of a trace. The first is a `Header`; each of the others has the seconds since then as `at`.
#
# A message is what crossed between the host and a plugin; an end is the result of one session of the strategy; a
# notice is a text about the plugins before a run, a remark a sentence about the model after one. A printed line is
# what a plugin printed. A serving line says which backwards call the session of a tool answers. The lines of
# `trace/flow.py` say what a flow did, between the messages of its agents.

VERSION = 1


class TracedModel(Line):
    name: str = ""
    provider: str = ""
    scripted: bool = False
    notice: str = ""


class Header(Line):
    trace: Literal["devhost"] = "devhost"
    version: Literal[1] = 1
    started: AwareDatetime
    command: Literal["run", "chat", "flow"] = "run"
    example: str = ""
    description: str = ""
    strategy: str = ""
    transport: str = ""
    model: TracedModel = TracedModel()
    query: str | None = None
    """None in a conversation: each request says what was asked."""


class MessageLine(Timed):
    event: Literal["message"] = "message"
    side: Side = Field(alias="from")
    plugin: str
    message: dict[str, Any]


class Outcome(Line):
    """A run as `--json` prints it."""

    text: str
    files: list[dict[str, Any]]
    json_: list[Any] = Field(alias="json")
    usage: Any
    variables: dict[str, Any]
    logs: list[LogEntry]
    dropped_retriever_resources: int
    findings: list[Finding]
    error: RunError | None
    strategy: str
    elapsed_seconds: float

    @property
    def outputs(self) -> NodeOutputs:
        return NodeOutputs(
            self.text,
            self.files,
            self.json_,
            self.usage,
            self.variables,
            self.logs,
            self.dropped_retriever_resources,
        )


class EndLine(Timed):
    event: Literal["end"] = "end"
    session_id: str
    asked: dict[str, int]
    failures: dict[str, str] = Field(default_factory=dict)
    """By the id of the request, why a tool call failed."""
    outcome: Outcome


class NoticeLine(Timed):
    event: Literal["notice"] = "notice"
    sentence: str


class PrintedLine(Timed):
    event: Literal["printed"] = "printed"
    plugin: str
    text: str


class RemarkLine(Timed):
    event: Literal["remark"] = "remark"
    sentence: str


class ServingLine(Timed):
    event: Literal["serving"] = "serving"
    session_id: str
    request_id: str


type TraceLine = Annotated[
    MessageLine | PrintedLine | ServingLine | EndLine | NoticeLine | RemarkLine | FlowTraceLine,
    Field(discriminator="event"),
]


# Reads a trace strictly; an error names the number of the line.
#
# Only the last line may be cut off: the run was killed then.

_LINE: TypeAdapter[TraceLine] = TypeAdapter(TraceLine, config=ConfigDict(defer_build=True))


_OF_FLOW: TypeAdapter[FlowTraceLine] = TypeAdapter(FlowTraceLine, config=ConfigDict(defer_build=True))


@dataclass(frozen=True)
class Trace:
    """A trace as it was written: its header and its lines, in order."""

    header: Header
    lines: tuple[TraceLine, ...]
    cut_off: bool
    """The last line is incomplete: the process that wrote it was killed."""

    @property
    def notices(self) -> tuple[str, ...]:
        """Each once, although a chat may start its plugins again."""
        return tuple(dict.fromkeys(line.sentence for line in self.lines if isinstance(line, NoticeLine)))


def read_trace(file: Path, only: re.Pattern[bytes] | None = None) -> Trace:
    """TraceError, with the number of the line, for a file that is not a whole trace; a cut last line is allowed.

    `only`: lines after the header in which it is not found are left out, unread.
    """
    try:
        with open_file(file) as trace:
            data = trace.read()
    except OSError as error:
        raise TraceError(f"{file} cannot be read: {error.strerror}") from error
    *written, rest = data.split(b"\n")
    cut_off = not _is_whole(rest)
    if not cut_off:  # an editor took the last line's end
        written.append(rest)
    numbered = [(number, text) for number, text in enumerate(written, start=1) if text.strip()]
    if not numbered:
        raise TraceError(f"{file}, line 1: there is no complete line, so this is not a trace of devhost")
    (first, text), *others = numbered
    if only is not None:
        others = [(number, line) for number, line in others if only.search(line)]
    return Trace(header_of(file, first, text), tuple(lines_of(file, others)), cut_off)


def _is_whole(rest: bytes) -> bool:
    try:
        json.loads(rest.strip() or b"{}")
    except (ValueError, RecursionError):
        return False
    return True


def header_of(file: Path, number: int, text: bytes) -> Header:
    """The first line of a trace; TraceError if it is not one."""
    data = _object(file, number, text)
    if data.get("trace") != "devhost":
        raise TraceError(f"{file}, line {number}: not a trace of devhost")
    if data.get("version") != VERSION:
        raise TraceError(
            f"{file}, line {number}: "
            f"the trace is of version {data.get('version')!r}; this devhost reads version {VERSION}"
        )
    try:
        return Header.model_validate(data)
    except ValidationError as error:
        raise TraceError(f"{file}, line {number}: {describe(error)}") from error


def lines_of(file: Path, written: Iterable[tuple[int, bytes]]) -> Iterator[TraceLine]:
    """Lines with their numbers; TraceError for one that a trace does not have."""
    for number, text in written:
        try:
            yield _LINE.validate_python(_object(file, number, text))
        except ValidationError as error:
            raise TraceError(f"{file}, line {number}: {describe(error)}") from error


def _object(file: Path, number: int, text: bytes) -> dict[str, object]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{file}, line {number}: not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise TraceError(f"{file}, line {number}: a line must be an object")
    return data


# Writes a trace during the run, each line at once, so that a killed run leaves all messages until then.

UNHEARD = frozenset({None, "heartbeat"})
"""Messages that belong to no session and that only some transports have: heartbeats, and the manifest."""
BEGINNING_BYTES = 100
TRACE_BEGINS = re.compile(rb'\s*\{\s*"trace"\s*:\s*"devhost"')


class TraceWriter(Watcher):
    """A context manager; TraceError on leaving it when the file could not be written to its end."""

    def __init__(self, file: Path, secrets: Secrets | None = None, facts: Mapping[str, Any] | None = None) -> None:
        """`secrets` are known values; without them every credential is hidden where it is sent.

        `facts` are the fields of the header (`lines.Header`), as a command knows them.

        Raises TraceError when the file cannot be written, or exists and is not a trace.
        """
        self._hides = _any if secrets is None else secrets.is_secret
        secrets = secrets or Secrets()
        self._path = file
        self._secrets = secrets
        self._writing = threading.Lock()
        self._failure: OSError | None = None
        _refuse_to_destroy(file)
        try:
            # A lone surrogate, which UTF-8 cannot hold, is written as the escape that JSON has for it.
            self._file: TextIO | None = file.open("w", encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise TraceError(f"--trace {file} cannot be written: {error.strerror}") from error
        with contextlib.suppress(OSError):  # a device, or a file system without locks
            fcntl.flock(self._file, fcntl.LOCK_SH)  # for `is_written`; it ends with this process, however that ends
        self._began = time.monotonic()
        header = Header(started=datetime.now(UTC), **secrets.masked(dict(facts or {})))
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
        if message.get("event") not in UNHEARD:
            hidden = self._secrets.masked(_without_credentials(message, self._hides))
            self._stamped({"event": "message", "from": side, "plugin": plugin, "message": hidden})

    def printed(self, plugin: str, text: str) -> None:
        hidden = self._secrets.masked(text)
        self._stamped({"event": "printed", "plugin": plugin, "text": hidden})

    def serving(self, session_id: str, request_id: str) -> None:
        self._stamped({"event": "serving", "session_id": session_id, "request_id": request_id})

    def ended(self, session_id: str, run: Run, model: ModelDescription) -> None:
        ended = {"asked": dict(run.asked), "failures": dict(run.calls.failures), "outcome": report(run, model)}
        self._stamped({"event": "end", "session_id": session_id, **self._secrets.masked(ended)})

    def notice(self, sentence: str) -> None:
        self._stamped({"event": "notice", "sentence": self._secrets.masked(sentence)})

    def remark(self, sentence: str) -> None:
        if sentence:
            self._stamped({"event": "remark", "sentence": self._secrets.masked(sentence)})

    def flow(self, line: FlowTraceLine) -> None:
        """What a flow did; the line's own time is not kept."""
        written: JsonObject = _OF_FLOW.dump_python(line, mode="json", exclude={"at"}, fallback=str)
        self._stamped(self._secrets.masked(written))

    def _stamped(self, line: JsonObject) -> None:
        with self._writing:  # the times never go back
            self._append({"at": round(time.monotonic() - self._began, 6), **line})

    def _append(self, line: JsonObject) -> None:
        if self._file is None:
            return  # the file is closed already; a plugin may still be printing
        try:
            self._file.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")
            self._file.flush()
        except OSError as error:  # a full disk must not end the run that is being watched
            self._failure = error
            file, self._file = self._file, None
            with contextlib.suppress(OSError):  # what it still buffers cannot be written either
                file.close()


def is_written(file: Path) -> bool:
    """Whether a process still writes this trace."""
    try:
        with open_file(file) as trace:
            fcntl.flock(trace, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _refuse_to_destroy(file: Path) -> None:
    """A trace replaces an older trace, but no other file, such as the script of the run."""
    try:
        if not file.is_file():
            return  # nothing yet, or a device, which keeps nothing
        with file.open("rb") as existing:
            beginning = existing.read(BEGINNING_BYTES)
    except OSError as error:
        raise TraceError(f"--trace {file} cannot be written: {error.strerror}") from error
    if beginning and not TRACE_BEGINS.match(beginning):
        raise TraceError(f"--trace {file} exists and is not a trace of devhost: name a new file, or an older trace")


def _any(_value: object) -> bool:
    return True


def _without_credentials(message: JsonObject, hides: Callable[[object], bool]) -> JsonObject:
    match message:
        case {"data": {"credentials": dict(credentials)} as data}:
            hidden = {key: MASK if hides(value) else value for key, value in credentials.items()}
            return {**message, "data": {**data, "credentials": hidden}}
        case _:
            return message


# Files of lines that are read while they are written: each read parses only what was added since the last one.

type NumberedLine = tuple[int, bytes]


class Growing[T](ABC):
    """What a file says so far: the same object as at the read before if nothing was added. Thread-safe."""

    def __init__(self, file: Path, failure: type[HostError]) -> None:
        """`failure`: what is raised, at every read, for a file that cannot be read or has other lines."""
        self.file = file
        self._failure = failure
        self._reading = threading.Lock()
        self._first, self._last = b"", b""
        self._begin_again()

    def read(self) -> T | None:
        """None if there is no file, or nothing of a value in it yet."""
        with self._reading:
            try:
                return self._read()
            except FileNotFoundError:
                self._begin_again()
                return None
            except OSError as error:
                raise self._failure(f"{self.file} cannot be read: {error.strerror}") from error
            except self._failure:
                self._begin_again()
                raise

    def _read(self) -> T | None:
        with open_file(self.file) as file:
            if not self._goes_on(file):
                self._begin_again()
            file.seek(self._offset)
            *whole, rest = file.read().split(b"\n")
        lines = list(enumerate(whole, start=self._number + 1))
        if whole:
            self._first, self._last = self._first or whole[0], whole[-1]
            self._number += len(whole)
            self._offset += sum(len(line) + 1 for line in whole)
        return self._added(lines, rest)

    def _goes_on(self, file: BinaryIO) -> bool:
        """Whether the first and the last line that were read are where they were: both have times in them."""
        if not self._offset:
            return True
        first = file.read(len(self._first))
        file.seek(self._offset - len(self._last) - 1)
        return first == self._first and file.read(len(self._last) + 1) == self._last + b"\n"

    def _begin_again(self) -> None:
        self._offset = self._number = 0
        self._first, self._last = b"", b""
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Forgets what was read."""

    @abstractmethod
    def _added(self, lines: Sequence[NumberedLine], rest: bytes) -> T | None:
        """The value with these whole lines, which may be none; `rest` stands behind the last line break."""


class GrowingTrace(Growing[Trace]):
    """None before the first line is written. `cut_off`: the last line is incomplete."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, TraceError)

    def _begin(self) -> None:
        self._header: Header | None = None
        self._lines: list[TraceLine] = []
        self._trace: Trace | None = None

    def _added(self, lines: Sequence[NumberedLine], rest: bytes) -> Trace | None:
        written = [(number, text) for number, text in lines if text.strip()]
        if self._header is None and written:
            (first, text), *written = written
            self._header = header_of(self.file, first, text)
        self._lines += lines_of(self.file, written)
        cut_off = bool(rest.strip())
        if self._header is not None and (self._trace is None or lines or cut_off != self._trace.cut_off):
            self._trace = Trace(self._header, tuple(self._lines), cut_off=cut_off)
        return self._trace
