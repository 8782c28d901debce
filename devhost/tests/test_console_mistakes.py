"""What a person or another program got wrong is a page of the console that says so, never a bare error."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from devhost.console.runs import Setup
from devhost.errors import ConsoleError
from support.console import ConsoleClient
from support.plugins import PUPPET

NO_USER = "~there-is-no-such-user/x"


@pytest.fixture
def console(tmp_path: Path) -> Iterator[ConsoleClient]:
    (tmp_path / "runs").mkdir()
    console = ConsoleClient(tmp_path / "runs", PUPPET)
    yield console
    console.close()


@pytest.mark.parametrize("field", ["plugin", "tools", "files"])
def test_a_path_of_a_user_that_does_not_exist_is_said_beside_its_field(console: ConsoleClient, field: str) -> None:
    page = console.post("/new", 200, source="none", do="load", **{field: NO_USER})

    assert f'id="wrong-{field}"' in page
    assert NO_USER in page


def test_a_suite_of_a_user_that_does_not_exist_is_said_to_be_missing(console: ConsoleClient) -> None:
    assert NO_USER in console.get(f"/suite?{urlencode({'file': NO_USER})}", 400)
    assert NO_USER in console.post("/suite/run", 400, file=NO_USER)


@pytest.mark.parametrize("path", ["/", "/list", "/runs/gone"])
def test_a_folder_that_was_deleted_is_a_page_that_says_so(console: ConsoleClient, path: str) -> None:
    folder = console.console.folder.path
    shutil.rmtree(folder)

    assert str(folder) in console.get(path, 404 if path.startswith("/runs") else 400)


def test_a_setup_that_cannot_be_written_leaves_no_half_of_it(tmp_path: Path) -> None:
    with pytest.raises(ConsoleError, match=r"gone/run\.setup\.json cannot be written: No such file"):
        Setup(question="Why?").write(tmp_path / "gone" / "run.setup.json")


def test_a_setup_of_another_version_is_a_run_that_no_form_started(console: ConsoleClient) -> None:
    (console.console.folder.path / "run.setup.json").write_text('{"future": true}')

    assert "The run ended before the strategy was asked" in console.get("/runs/run")
    assert "cannot be read" in console.get("/compare/run/run", 400)
