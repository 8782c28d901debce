"""The clock of every run in these tests."""

from collections.abc import Iterator

import pytest

from tests.support.clock import FakeTime


@pytest.fixture(autouse=True)
def time() -> Iterator[FakeTime]:
    """Waits and turns end by it even where a test does not ask for it, so no run depends on the machine."""
    with FakeTime().governed() as time:
        yield time
