"""What stands in a folder or a file, however odd, is a page of the console with words."""

import json
import os
import re
from pathlib import Path

import pytest
import yaml

from devhost.cli.commands import main
from devhost.console.children import Children
from devhost.console.folder import OUTPUT, TRACE
from devhost.console.setup import SETUP, Setup
from devhost.console.web import STATIC, TEMPLATES
from support.console import ConsoleClient, words
from support.lending import Lender
from support.plugins import PUPPET, TOOLBOX

RUN = "run"
SCRIPT = str(TOOLBOX / "script.yaml")


@pytest.fixture(scope="module")
def folder(lender: Lender, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a run, in which a question, a prompt and an answer have half a surrogate pair, and a file of cases."""
    folder = tmp_path_factory.mktemp("runs")
    trace = folder / f"{RUN}.jsonl"
    plugins = ("--plugin", str(PUPPET), "--tools", str(TOOLBOX), "--script", SCRIPT)
    query = json.dumps([{"ask": "halved"}, {"say": "halved"}])
    with lender.lends():
        assert main(["run", "--query", query, *plugins, "--json", "--trace", str(trace)]) == 0
    trace.write_text(trace.read_text().replace("halved", r"hal\ud800ved"))
    case = {"name": "a", "query": "[]", "turns": [{"text": "x"}], "expect": {"text": {"contains": "x"}}}
    (folder / "cases.yaml").write_text(yaml.safe_dump({"cases": [case]}))
    return folder


@pytest.fixture(scope="module")
def console(folder: Path) -> ConsoleClient:
    """Nothing can be started from it. An error that no page is made of is raised."""
    return ConsoleClient(folder, PUPPET, Children(most=0))


LOADED = re.compile(r'(?:"/static/|from "\./)([^"]+)"')


def test_what_a_page_or_a_script_loads_is_there(console: ConsoleClient) -> None:
    files = [*TEMPLATES.glob("*"), *STATIC.glob("*.js")]
    named = {name for file in files for name in LOADED.findall(file.read_text(encoding="utf-8"))}

    assert {"page.js", "vendor/htmx.min.js", "console.css"} <= named
    assert [name for name in sorted(named) if console.client.get(f"/static/{name}").status_code != 200] == []


@pytest.mark.parametrize("path", ["/", "/runs/gone"])
def test_a_folder_that_was_deleted_is_a_page_that_says_so(path: str, tmp_path: Path) -> None:
    assert str(tmp_path / "gone") in ConsoleClient(tmp_path / "gone").get(path, 404 if "runs" in path else 200)


def test_files_that_have_no_end_are_refused(tmp_path: Path) -> None:
    console = ConsoleClient(tmp_path, PUPPET)
    pipe = tmp_path / "pipe.yaml"
    output = tmp_path / f"begun{OUTPUT}"
    for file in (pipe, tmp_path / f"run{TRACE}", tmp_path / f"other{SETUP}", output):
        os.mkfifo(file)
    Setup().write(tmp_path / f"begun{SETUP}")

    assert "the address names no file of cases" in words(console.get("/suite?file=", 400))
    for path in (pipe, Path("/dev/zero")):
        assert "it is not a regular file" in words(console.get(f"/suite?file={path}", 400))
    console.get("/runs/run", 404)
    assert "The run ended before" in words(console.get("/runs/begun"))
    assert "All 1" in words(console.get("/"))


SHOWN = "hal\N{REPLACEMENT CHARACTER}ved"
"""JSON and YAML can hold half a surrogate pair; UTF-8 cannot."""


@pytest.mark.parametrize("path", ["/", "/runs/run", "/runs/run/again", "/runs/run/keep", "/compare/run/run"])
def test_a_page_of_a_run_shows_what_utf_8_cannot_hold(console: ConsoleClient, path: str) -> None:
    page = console.get(path)
    assert SHOWN in page
    for row in re.findall(r'hx-get="(/runs/run/rows/[^"]+)"', page):
        console.get(row)
