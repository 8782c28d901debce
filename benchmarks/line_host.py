"""A host in this process that adds almost no work, so that only the work of the plugin and the SDK is measured.

The host provides a Session of the SDK for the script of a run. The session's reader processes lines like the SDK's
stdin reader: up to 64 KiB, the size of one read, before another greenlet can run.
"""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from time import process_time
from typing import Any

import gevent
from dify_plugin.config.config import InstallMethod
from dify_plugin.core.entities.plugin.io import PluginInStream, PluginInStreamEvent
from dify_plugin.core.runtime import Session
from dify_plugin.core.server.__base.request_reader import RequestReader
from dify_plugin.core.server.__base.response_writer import ResponseWriter
from pydantic import TypeAdapter

from benchmarks.answers import Answer, Asked, Failure, Script

BYTES_AT_ONCE = 65_536
NEXT_READ = 0.00001
"""Seconds of sleep before the next read. The SDK waits for every read. A sleep of 0 would end before any timer runs."""
SESSION = "s"
MOMENT = 0.001
"""Seconds from which on the reading of a line counts as long."""


class LineHost(RequestReader, ResponseWriter):
    """Answers the calls of one session."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script = script
        self._line = TypeAdapter(dict[str, Any])
        self.long_reads: list[tuple[float, float]] = []
        """Start and end in CPU time of each reading of a line by the SDK that took longer than ``MOMENT``."""

    def session(self) -> Session:
        return Session(
            session_id=SESSION,
            executor=ThreadPoolExecutor(max_workers=1),
            reader=self,
            writer=self,
            install_method=InstallMethod.Local,
        )

    def _read_stream(self) -> Generator[PluginInStream, None, None]:
        yield from ()

    def done(self) -> None:
        """Do nothing, because the transport serves only one session."""

    def write(self, data: str) -> None:
        """Answer requests and ignore every other line."""
        if asked := Asked.read(data):
            gevent.spawn(self._answer, asked, self._script.pop(asked.kind))

    def _answer(self, asked: Asked, answer: Answer | Failure) -> None:
        passed = 0
        for line in asked.answered(SESSION, answer):
            self._pass_on(line)
            passed += len(line)
            if passed >= BYTES_AT_ONCE:
                gevent.sleep(NEXT_READ)
                passed = 0

    def _pass_on(self, line: bytes) -> None:
        began = process_time()
        read = self._line.validate_json(line)
        if process_time() - began > MOMENT:
            self.long_reads.append((began, process_time()))
        arrived = PluginInStreamEvent.value_of(read["event"])
        self._process_line(PluginInStream(read["session_id"], arrived, read["data"], self, self))
