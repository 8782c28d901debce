"""All requests of these tests for model calls pass the strict reader."""

from collections.abc import Iterator

import pytest

from tests.support.strict_reader import READER


@pytest.fixture(scope="session", autouse=True)
def devhost_is_read() -> Iterator[None]:
    with READER.reads_devhost():
        yield


@pytest.fixture(autouse=True)
def requests_are_sound(devhost_is_read: None) -> Iterator[None]:  # noqa: ARG001 - it comes first
    """Also those of the fixtures of a module or the session, which are made before their first test."""
    yield
    READER.check()
    READER.forget()
