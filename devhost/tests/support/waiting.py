"""Waiting for a state or for a printed text, a clock that tests move, and a model that pauses."""

import subprocess
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Self

import pytest

from devhost import ScriptedModel
from devhost.models.backend import ModelRequest
from devhost.protocol.wire import JsonObject

PATIENCE = 300
"""Seconds after which a test that would wait for ever fails. Nothing that works takes nearly as long."""


def wait_for(reached: Callable[[], object], what: str) -> None:
    give_up = time.monotonic() + PATIENCE
    began = time.monotonic()
    while not reached():
        now = time.monotonic()
        assert now < give_up, f"{what}: not within {PATIENCE} seconds"
        time.sleep(max(0.005, 3 * (now - began)))  # a page that takes long is asked for less often
        began = time.monotonic()


def printed_until(process: subprocess.Popen[str], awaited: Callable[[str], bool]) -> str:
    """The lines on a process's stdout until what is awaited is true of them."""
    assert process.stdout is not None
    said = ""
    while not awaited(said):
        line = process.stdout.readline()
        assert line, said
        said += line
    return said


class MovableClock:
    """In place of `time` in a module of devhost: it moves only when a test moves it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
        self._seconds = 1000.0
        monkeypatch.setattr(module, "time", self)

    def monotonic(self) -> float:
        return self._seconds

    def move(self, seconds: float) -> None:
        self._seconds += seconds


class PausingModel(ScriptedModel):
    """Calls `pause` after the first chunk of each answer."""

    pause: Callable[[], object]

    @classmethod
    def that(cls, pause: Callable[[], object]) -> Self:
        """Answers with four chunks."""
        model = cls.of([{"text": "abcd", "chunk_size": 1}])
        model.pause = pause
        return model

    def invoke(self, request: ModelRequest, /) -> Iterator[JsonObject]:
        for number, chunk in enumerate(super().invoke(request)):
            if number == 1:
                self.pause()
            yield chunk
