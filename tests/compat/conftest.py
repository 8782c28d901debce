"""An environment for each version of the SDK, and one agent for the tools of all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from devhost import Host
from tests.compat.environments import environment_with

ROOT = Path(__file__).resolve().parents[2]
SDKS = ("0.4.5", "0.7.4", "0.10.2")
"""An old one that refuses the credential type `unauthorized`, one between, and the plugin's own."""


@pytest.fixture(scope="session", params=SDKS)
def sdk(request: pytest.FixtureRequest) -> str:
    version: str = request.param
    return version


@pytest.fixture(scope="session")
def environment(sdk: str) -> Path:
    return environment_with(sdk)


@pytest.fixture(scope="session")
def agent() -> Iterator[Host]:
    with Host.start(ROOT) as host:
        yield host
