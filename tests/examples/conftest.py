"""Makes the examples importable and starts their plugins; each example is a plugin of its own."""

import sys
from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection

import pytest
from sqlalchemy import URL

from .postgres import Postgres, programs, running

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HELPDESK = EXAMPLES / "helpdesk"
INJECTION = EXAMPLES / "injection"
ORDER_ENTRY = EXAMPLES / "order_entry"
MEMO_TO_TASK = EXAMPLES / "memo_to_task"
ANSWERS = EXAMPLES / "answers"

# At the end: an example has a `provider` and a `main` as we do, and ours must win. Packages such as `helpdesk_search`
# and `memos` are theirs alone; `shared` has what several of them use.
sys.path += [str(each) for each in (HELPDESK, INJECTION, ORDER_ENTRY, MEMO_TO_TASK, ANSWERS, EXAMPLES / "shared")]


@pytest.fixture
def helpdesk() -> Path:
    return HELPDESK


@pytest.fixture
def injection() -> Path:
    return INJECTION


@pytest.fixture
def answers() -> Path:
    return ANSWERS


@pytest.fixture(scope="session")
def manual_index() -> Connection:
    from helpdesk_search.index import index_of_manual  # noqa: PLC0415 - importable only once this file has run

    return index_of_manual(HELPDESK / "manual")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed: its initdb and pg_ctl were not found")
    with running(found) as server:
        yield server


@pytest.fixture(scope="session")
def pgvector() -> Iterator[Postgres]:
    """A PostgreSQL that has the extension."""
    found = programs(extension="vector")
    if found is None:
        pytest.skip("no PostgreSQL with pgvector was found")
    with running(found) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> URL:
    """An empty database of each kind that the examples know."""
    if request.param == "sqlite":
        return URL.create("sqlite", database=str(tmp_path / "tools.sqlite3"))
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()
