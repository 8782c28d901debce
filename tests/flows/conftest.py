"""The tests of flows run in the environment of the workflow engine: `make flows`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from devhost.flow.turn import has_engine
from devhost.host.host import Host
from devhost.tools.setup import ToolSetup

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "devhost" / "tests" / "fixtures"
CHARTS_KEY = "ck_live_1234567890"
collect_ignore_glob = [] if has_engine() else ["test_*.py"]


@pytest.fixture(scope="session")
def office() -> Iterator[Host]:
    """A host with the tools of the office, which send and delete."""
    with Host.start(ROOT, tools=[ROOT / "examples" / "injection"]) as host:
        yield host


@pytest.fixture(scope="session")
def puppet() -> Iterator[Host]:
    """A host with the strategy that does what its query says, and tools of all shapes."""
    setups = [
        *(ToolSetup.read(FIXTURES / name) for name in ("toolbox", "oddments")),
        ToolSetup.read(FIXTURES / "charts", credentials={"charts": {"api_key": CHARTS_KEY}}),
    ]
    with Host.start(FIXTURES / "puppet", tools=[setup.with_every_tool() for setup in setups]) as host:
        yield host
