"""The tests of flows run in the environment of the workflow engine: `make flows`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from devhost.flow.engine_loading import has_engine
from devhost.host.host import Host

ROOT = Path(__file__).parents[2]
collect_ignore_glob = [] if has_engine() else ["test_*.py"]


@pytest.fixture(scope="session")
def office() -> Iterator[Host]:
    """A host with the tools of the office, which send and delete."""
    with Host.start(ROOT, tools=[ROOT / "examples" / "injection"]) as host:
        yield host
