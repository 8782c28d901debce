"""The plugin in a process of its own, started as the host starts it, in each of the host's three ways."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from devhost import Host, HostLimits

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session", params=["stdio", "tcp", "http"])
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """One process for all runs, as in Dify; its own line limit is what ours is tested against."""
    with Host.start(ROOT, limits=HostLimits(run_seconds=900), transport=request.param) as started:
        yield started
