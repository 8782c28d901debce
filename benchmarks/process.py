"""A plugin's process, driven as Dify's daemon does: over stdio, with many sessions at once.

The result is the lines of each run and the CPU time of the process. The process contains only the plugin and the SDK,
so its CPU time is the cost of a run.
"""

import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

import gevent
from gevent.event import AsyncResult
from gevent.lock import RLock
from gevent.queue import Queue
from gevent.subprocess import DEVNULL, PIPE, Popen
from pydantic_core import to_json

from benchmarks.answers import Answer, Asked, Failure, Json, Script
from benchmarks.plugins import Plugin, Sides, unpacked
from benchmarks.scenario import Scenario, parameters_of

_SESSION = re.compile(rb'"session_id":"([^"]*)","data":\{"type":"(\w+)"')
_TEXT = b'"type":"text"'
_HEAD = 200
"""Number of bytes at the beginning of a line that contain its session and type."""
_SETTINGS = {"INSTALL_METHOD": "local", "PYTHONDONTWRITEBYTECODE": ""}
_CPU_CLOCK = 2
"""Kind of clock. Linux derives the number of a process's CPU clock from its id and this kind (clock_getcpuclockid)."""


class RunFailed(Exception):  # noqa: N818 - the name says what happened
    """Raised if a run ends with an error, so that it measures nothing."""


@dataclass(frozen=True)
class Ran:
    """The output of a run."""

    lines: list[bytes]
    first_text: float | None
    """Seconds by the wall clock until the first text; None if there was no text."""

    @property
    def messages(self) -> list[Json]:
        return [json.loads(line)["data"]["data"] for line in self.lines]

    @property
    def text(self) -> str:
        """The text that the user reads."""
        return "".join(message["message"]["text"] for message in self.messages if message["type"] == "text")


class PluginProcess:
    """A plugin that runs until the end of its ``with`` block."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        self._process = Popen(
            [sys.executable, "-m", "main"],
            cwd=plugin.folder,
            env=_environment(),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
        )
        self._stdin = cast("IO[bytes]", self._process.stdin)
        self._numbers = count()
        self._writing = RLock()
        self._runs: dict[str, Queue[tuple[str, bytes]]] = {}
        self._serves: AsyncResult[bool] = AsyncResult()
        self._reader = gevent.spawn(self._read, cast("IO[bytes]", self._process.stdout))

    def __enter__(self) -> Self:
        """Wait until the plugin serves requests.

        Raises:
            RuntimeError: the plugin ends before that.
        """
        if not self._serves.get():
            raise RuntimeError(f"the plugin in {self._plugin.folder.name}/ does not start")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def cpu(self) -> float:
        """Return the CPU seconds since the start of the process."""
        return time.clock_gettime((~self._process.pid << 3) | _CPU_CLOCK)

    def memory(self) -> float:
        """Return the bytes of memory that the process uses now."""
        pages = Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1]
        return float(pages) * os.sysconf("SC_PAGE_SIZE")

    def run(self, scenario: Scenario) -> Ran:
        """Run the plugin's strategy once.

        Raises:
            RunFailed: the run ends with an error.
        """
        session_id = f"session-{next(self._numbers)}"
        script = Script(scenario.model, scenario.tools)
        arrived: Queue[tuple[str, bytes]] = Queue()
        self._runs[session_id] = arrived
        began = time.perf_counter()
        self._write(to_json(self._request(session_id, scenario)))
        lines: list[bytes] = []
        first_text: float | None = None
        while True:
            kind, line = arrived.get()
            if kind == "invoke" and (asked := Asked.read(line.decode())):
                gevent.spawn(self._answer, session_id, asked, script.pop(asked.kind))
            elif kind == "stream":
                lines.append(line)
                if first_text is None and _TEXT in line[:_HEAD]:
                    first_text = time.perf_counter() - began
            elif kind == "error":
                raise RunFailed(line.decode())
            elif kind == "end":
                del self._runs[session_id]
                return Ran(lines, first_text)

    def _request(self, session_id: str, scenario: Scenario) -> Json:
        data = {
            "user_id": "user",
            "type": "agent_strategy",
            "action": "invoke_agent_strategy",
            "agent_strategy_provider": self._plugin.provider,
            "agent_strategy": self._plugin.strategy,
            "agent_strategy_params": parameters_of(scenario),
        }
        return {"session_id": session_id, "event": "request", "data": data}

    def _answer(self, session_id: str, asked: Asked, answer: Answer | Failure) -> None:
        for line in asked.answered(session_id, answer):
            self._write(line)

    def _write(self, line: bytes) -> None:
        with self._writing:
            self._stdin.write(line + b"\n")
            self._stdin.flush()

    def _read(self, stdout: Iterable[bytes]) -> None:
        for line in stdout:
            if found := _SESSION.search(line, 0, _HEAD):
                self._runs[found[1].decode()].put((found[2].decode(), line))
            elif b'"heartbeat"' in line[:_HEAD]:
                self._serves.set(True)
        if not self._serves.ready():
            self._serves.set(False)
        for arrived in self._runs.values():
            arrived.put(("error", b"the plugin's process has ended"))


def _environment() -> dict[str, str]:
    """Return the environment of a plugin's process. Modules come from its own folder and never from this project."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | _SETTINGS


@contextmanager
def side_by_side(official: Path | None) -> Iterator[Sides[PluginProcess]]:
    """Start a process for each plugin."""
    with unpacked(official) as plugins, ExitStack() as stack:
        yield Sides(*(stack.enter_context(PluginProcess(plugin)) for plugin in plugins.all))
