"""A plugin's process as the daemon sees it: JSON lines in and out, with the answers of each session."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

LONGEST_WAIT = 300.0
"""Seconds, for the start and for each request: only a plugin that hangs takes longer, on a slow machine too."""


class StdioPlugin:
    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "main"],
            cwd=folder,
            env={**os.environ, **environment, "INSTALL_METHOD": "local", "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        with self._watched():
            self.manifest = self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def request(self, requests: Mapping[str, Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
        """Send the request of each session before reading anything; return each session's events up to its end."""
        with self._watched():
            return self._answered(requests)

    def _answered(self, requests: Mapping[str, Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
        for session, data in requests.items():
            self._write({"session_id": session, "event": "request", "data": {"user_id": "tester", **data}})
        events: dict[str, list[dict[str, Any]]] = {session: [] for session in requests}
        unfinished = set(requests)
        while unfinished:
            line = self._read()
            if line.get("event") != "session":
                continue
            session = line["session_id"]
            event = line["data"]
            if event["type"] == "end":
                unfinished.discard(session)
            else:
                events[session].append(event)
        return events

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Any wait ends: a killed process closes its stdout."""
        watchdog = threading.Timer(LONGEST_WAIT, self._process.kill)
        watchdog.start()
        try:
            yield
        finally:
            watchdog.cancel()

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            if line.strip():
                message: dict[str, Any] = json.loads(line)
                return message
        raise AssertionError("the plugin closed its stdout")


def messages(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    assert {event["type"] for event in events} == {"stream"}, events
    return [event["data"] for event in events]
