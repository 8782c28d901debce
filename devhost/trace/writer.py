"""Writes a trace during the run, each line at once, so that a killed run leaves all messages until then.

In: what crosses between the host and its plugins. Out: the lines of `lines.py`, without secrets: neither where
credentials are sent nor, if they have six characters or more, in any other place.
"""

import contextlib
import fcntl
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, TextIO

from devhost.errors import TraceError
from devhost.models.backend import ModelDescription
from devhost.node.outputs.report import report
from devhost.node.outputs.run import Run
from devhost.process.watcher import Side, Watcher
from devhost.protocol.wire import JsonObject
from devhost.text.secrets import MASK, Secrets
from devhost.text.user_file import open_file
from devhost.trace.flow.lines import Timed
from devhost.trace.lines import VERSION

UNHEARD = frozenset({None, "heartbeat"})
"""Messages that belong to no session and that only some transports have: heartbeats, and the manifest."""
UNKNOWN_FACTS: Mapping[str, object] = {
    "command": "run",
    "example": "",
    "description": "",
    "strategy": "",
    "transport": "",
    "model": {"name": "", "provider": "", "scripted": False, "notice": ""},
    "query": None,
}
"""The header of a trace that a test or another program writes."""
BEGINNING_BYTES = 100
TRACE_BEGINS = re.compile(rb'\s*\{\s*"trace"\s*:\s*"devhost"')


class TraceWriter(Watcher):
    """A context manager; TraceError on leaving it when the file could not be written to its end."""

    def __init__(self, file: Path, secrets: Secrets | None = None, facts: Mapping[str, object] = UNKNOWN_FACTS) -> None:
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
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._append({"trace": "devhost", "version": VERSION, "started": started, **secrets.masked(dict(facts))})

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

    def printed(self, plugin: str, text: str, *, exact: bool) -> None:
        hidden = self._secrets.masked(text)
        self._stamped({"event": "printed", "plugin": plugin, "text": hidden, "exact": exact})

    def serving(self, session_id: str, request_id: str) -> None:
        self._stamped({"event": "serving", "session_id": session_id, "request_id": request_id})

    def ended(self, session_id: str, run: Run, model: ModelDescription) -> None:
        outcome = self._secrets.masked(report(run, model))
        self._stamped({"event": "end", "session_id": session_id, "asked": dict(run.asked), "outcome": outcome})

    def notice(self, sentence: str) -> None:
        self._stamped({"event": "notice", "sentence": self._secrets.masked(sentence)})

    def remark(self, sentence: str) -> None:
        if sentence:
            self._stamped({"event": "remark", "sentence": self._secrets.masked(sentence)})

    def flow(self, line: Timed) -> None:
        """What a flow did; the line's own time is not kept."""
        self._stamped(self._secrets.masked(line.model_dump(mode="json", exclude={"at"}, fallback=str)))

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
