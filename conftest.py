"""Imports the SDK before any test, because its import patches threads and sockets, and brings devhost's fixtures.

Removes two things that a developer's machine adds: the settings of an OpenAI key or server, which no test may call, and
the disabled Ctrl-C of processes that a shell starts in the background, which child processes inherit.
"""

import gc
import os
import signal
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from support.lending import Lender

with warnings.catch_warnings():
    # gevent finds ssl loaded already (by a pytest plugin), and the SDK uses an old way to configure pydantic.
    warnings.simplefilter("ignore")
    import dify_plugin  # noqa: F401 - for what its import does

for name in [name for name in os.environ if name.startswith("OPENAI_")]:
    del os.environ[name]

signal.signal(signal.SIGINT, signal.default_int_handler)

# In CI the same code always gets the same examples; elsewhere each run tries others. Nothing fails because it is slow:
# no example has a deadline, and slow generation is not an error.
settings.register_profile(
    "gate",
    max_examples=30,
    derandomize=bool(os.environ.get("CI")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("many", settings.get_profile("gate"), max_examples=200)
settings.load_profile("gate")

pytest_plugins = ["support.plugins"]


@pytest.fixture(scope="session")
def lent_folders(lent_folders: frozenset[Path]) -> frozenset[Path]:
    """The agent and two examples as well."""
    root = Path(__file__).parent
    return lent_folders | {root, root / "examples" / "helpdesk", root / "examples" / "injection"}


@pytest.fixture(scope="session")
def help_desk(lender: "Lender", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace of a run of the help desk: two searches in the first round, an answer in the second."""
    from devhost.cli.commands import main  # noqa: PLC0415 - after the import of the SDK

    file = tmp_path_factory.mktemp("help_desk") / "run.jsonl"
    with lender.lends():
        main(["run", "--example", "helpdesk", "--json", "--trace", str(file)])
    return file


def pytest_addoption(parser: pytest.Parser) -> None:
    """``make conversations`` sets the first; see tests/agent/test_conversations.py and test_recorded_states.py."""
    parser.addoption("--write-conversations", action="store_true")
    parser.addoption("--write-states", action="store_true")


def pytest_collection_finish() -> None:
    """What was collected stays to the end, so that the garbage collector need not look through it again and again."""
    gc.collect()
    gc.freeze()
