"""The clock that rules a whole run."""

from collections.abc import Iterator

import pytest

from tests.support.clock import FakeTime


@pytest.fixture
def time() -> Iterator[FakeTime]:
    """Waits for messages end by it too."""
    with FakeTime().governed() as time:
        yield time
