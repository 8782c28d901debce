"""A host in this process that adds almost no work of its own.

In: the script of a run. Out: a Session of the SDK whose reader takes the lines as the SDK's stdin reader does, 64 KiB
before another greenlet gets its turn (the size of one read). What is measured is the work of the plugin and the SDK.
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
"""Seconds. The SDK waits for every read; a sleep of 0 would come back before any timer is served."""
SESSION = "s"
MOMENT = 0.001
"""Seconds."""


class LineHost(RequestReader, ResponseWriter):
    """Answers the calls of one session."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script = script
        self._line = TypeAdapter(dict[str, Any])
        self.long_reads: list[tuple[float, float]] = []
        """When the SDK began and ended to read a line, in CPU time, where that took more than a moment."""

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
        """Do nothing: the transport serves one session."""

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
