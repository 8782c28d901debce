"""A host with the puppet strategy and the toolbox, for a module's tests together."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from devhost import Host, Run, ScriptedModel
from devhost.protocol.wire import JsonObject

FIXTURES = Path(__file__).parent / "fixtures"
PUPPET = FIXTURES / "puppet"
TOOLBOX = FIXTURES / "toolbox"


class Perform(Protocol):
    def __call__(self, *steps: JsonObject, turns: Sequence[JsonObject] = (), **options: object) -> Run: ...


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host.start(PUPPET, tools=[TOOLBOX]) as host:
        yield host


@pytest.fixture
def perform(host: Host) -> Perform:
    """Runs the puppet's steps on the module's host."""

    def perform(*steps: JsonObject, turns: Sequence[JsonObject] = (), **options: object) -> Run:
        model = ScriptedModel.of(list(turns) or [{"text": "unused"}])
        return host.run("puppet", {"query": json.dumps(steps)}, model=model, **options)  # type: ignore[arg-type] # passed on as given

    return perform
