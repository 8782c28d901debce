"""The plugin in a process of its own, started as the host starts it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from devhost import Host, HostLimits

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    """One process for all runs of a module, as in Dify; its own line limit is what ours is tested against."""
    with Host.start(ROOT, limits=HostLimits(run_seconds=60)) as started:
        yield started
