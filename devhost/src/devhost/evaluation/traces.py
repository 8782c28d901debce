"""The traces of the runs of an evaluation, which go on at once in one host: those of runs that failed stay."""

import re
import secrets as random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devhost.errors import SuiteError
from devhost.models.backend import ModelDescription
from devhost.node.outputs.run import Run
from devhost.process.session import Side, Watcher
from devhost.protocol.wire import JsonObject
from devhost.text import Secrets, worded
from devhost.trace.lines import TraceWriter


@dataclass
class CaseTrace:
    """Of one run."""

    file: Path
    writer: TraceWriter
    is_kept: bool = False


class CaseTraces(Watcher):
    """Each message goes to the trace of its run: to that of its conversation, or of the call that its session serves.

    What plugins print belongs to no run, and is left out.
    """

    def __init__(self, folder: Path | None = None, secrets: Secrets | None = None) -> None:
        """Without a folder nothing is written."""
        self._folder = folder
        self._secrets = secrets
        self._writers: dict[object, TraceWriter] = {}
        """By the ids of conversations, sessions, and the requests that they make."""
        self._changing = threading.Lock()

    @contextmanager
    def of(self, conversation: str, about: str, facts: Mapping[str, object]) -> Iterator[CaseTrace | None]:
        """The trace of a run that begins now; it is removed when the run is over, unless it is kept."""
        if self._folder is None:
            yield None
            return
        words = re.sub(r"[^A-Za-z0-9]+", "-", about).strip("-")[:60] or "case"
        file = self._folder / f"{words}-{random.token_hex(3)}.jsonl"
        with worded(lambda why: SuiteError(f"--traces {self._folder} cannot be made: {why}")):
            self._folder.mkdir(parents=True, exist_ok=True)
        with TraceWriter(file, self._secrets, facts) as writer:
            trace = CaseTrace(file, writer)
            with self._changing:
                self._writers[conversation] = writer
            try:
                yield trace
            finally:
                with self._changing:
                    self._writers = {key: value for key, value in self._writers.items() if value is not writer}
        if not trace.is_kept:
            file.unlink()

    def crossed(self, side: Side, plugin: str, message: JsonObject) -> None:
        session = message.get("session_id")
        with self._changing:
            writer = self._writers.get(session) or self._writers.get(message.get("conversation_id"))
            if writer is None:
                return
            self._writers[session] = writer
            match message.get("data"):
                case {"data": {"backwards_request_id": str(request)}} | {"backwards_request_id": str(request)}:
                    self._writers[request] = writer
        writer.crossed(side, plugin, message)

    def serving(self, session_id: str, request_id: str) -> None:
        with self._changing:
            writer = self._writers.get(request_id)
            if writer is not None:
                self._writers[session_id] = writer
        if writer is not None:
            writer.serving(session_id, request_id)

    def ended(self, session_id: str, run: Run, model: ModelDescription) -> None:
        with self._changing:
            writer = self._writers.get(session_id)
        if writer is not None:
            writer.ended(session_id, run, model)
