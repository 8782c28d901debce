"""A host with the puppet strategy and the toolbox, for a module's tests together; and plugins that all tests share."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Protocol

import pytest

from devhost import Host, Run, ScriptedModel
from devhost.protocol.wire import JsonObject
from support.lending import Lender

if TYPE_CHECKING:
    from fake_openai import FakeOpenAI

PROJECT = Path(__file__).resolve().parents[2]
FIXTURES = PROJECT / "tests" / "fixtures"
PUPPET = FIXTURES / "puppet"
TOOLBOX = FIXTURES / "toolbox"
ODDMENTS = FIXTURES / "oddments"
CHARTS = FIXTURES / "charts"
GATEWAY = FIXTURES / "gateway"


class Perform(Protocol):
    def __call__(self, *steps: JsonObject, turns: Sequence[JsonObject] = (), **options: object) -> Run: ...


@pytest.fixture(scope="session")
def lent_folders() -> frozenset[Path]:
    return frozenset({PUPPET, TOOLBOX, ODDMENTS, CHARTS, GATEWAY})


@pytest.fixture(scope="session")
def lender(lent_folders: frozenset[Path]) -> Iterator[Lender]:
    lender = Lender(lent_folders)
    yield lender
    lender.close()


@pytest.fixture
def lent_plugins(lender: Lender) -> Iterator[None]:
    """The test's hosts use the session's plugin processes."""
    with lender.lends():
        yield


@pytest.fixture(scope="module")
def without_pauses() -> Iterator[None]:
    """The scripted model streams at once, whatever the examples' scripts say."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("devhost.models.scripted.model.time", SimpleNamespace(sleep=lambda _seconds: None))
        yield


@pytest.fixture(scope="module")
def host(lender: Lender) -> Iterator[Host]:
    with lender.lends():
        host = Host.start(PUPPET, tools=[TOOLBOX])
    yield host
    with lender.lends():
        host.__exit__()


@pytest.fixture
def perform(host: Host) -> Perform:
    """Runs the puppet's steps on the module's host."""

    def perform(*steps: JsonObject, turns: Sequence[JsonObject] = (), **options: object) -> Run:
        model = ScriptedModel.of(list(turns) or [{"text": "unused"}])
        return host.run("puppet", {"query": json.dumps(steps)}, model=model, **options)  # type: ignore[arg-type] # passed on as given

    return perform


@pytest.fixture(scope="session")
def server() -> "Iterator[FakeOpenAI]":
    from fake_openai import FakeOpenAI  # noqa: PLC0415 - tests that ask no model need not read the openai package

    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def fake(server: "FakeOpenAI") -> "FakeOpenAI":
    server.forget()
    return server
