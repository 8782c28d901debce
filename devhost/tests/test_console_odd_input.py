"""Whatever stands in an address, a form or a file, the console answers with a page that has words, never a 500."""

import json
import os
import re
from pathlib import Path

import pytest
import yaml
from starlette.routing import Route
from starlette.testclient import TestClient

from devhost.cli.commands import main
from devhost.console.children import Children
from devhost.console.folder import OUTPUT, TRACE
from devhost.console.setup import SETUP, Setup
from devhost.console.web import STATIC, TEMPLATES
from support.console import HOME, ConsoleClient, words
from support.lending import Lender
from support.plugins import PUPPET, TOOLBOX

RUN = "run"
ODD = ("a%00b.yaml", "%ED%A0%80", "..%2F..%2Fetc%2Fpasswd", "x" * 5_000 + ".yaml", "", "%5B" * 2_000)
"""As a browser or another program sends them: NUL, a lone surrogate, paths, too long a name, JSON too deep, …"""
PLACES = {"name": RUN, "row": "row-1-1", "left": RUN, "right": RUN}
SCRIPT = str(TOOLBOX / "script.yaml")
NEW = {"do": "start", "source": f"script:{SCRIPT}", "p.query": "[]"}
FIELDS: dict[tuple[str, str], tuple[dict[str, str], str]] = {
    ("GET", "/"): ({}, "search ending token"),
    ("POST", "/delete"): ({}, "run"),
    ("GET", "/compare"): ({"run": RUN}, "run"),
    ("GET", "/runs/run"): ({}, "seen"),
    ("GET", "/runs/run/again"): ({}, "turn at"),
    ("POST", "/runs/run/again"): (
        {"at": "1", "answers": "script", "script": SCRIPT},
        "turn at answers script model completion live p.mood p.query",
    ),
    ("POST", "/runs/run/keep"): ({"name": "a", "file": "cases.yaml"}, "name file"),
    ("POST", "/runs/run/steer"): ({}, "do words told"),
    ("GET", "/new"): ({}, "plugin source strategy tools from"),
    ("POST", "/new"): (NEW, "plugin strategy source tools files real model api completion p.query p.mood"),
    ("GET", "/suite"): ({}, "file seen"),
    ("POST", "/suite"): ({"do": "run", "file": "cases.yaml"}, "do file instruction real"),
}
"""What each address needs so that an odd value is looked at, and what it reads of its query or form."""


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


def status(browser: TestClient, method: str, path: str, body: str = "") -> int:
    if method == "GET":
        return browser.get(f"{path}?{body}").status_code
    headers = {"content-type": "application/x-www-form-urlencoded", "origin": HOME}
    return browser.post(path, content=body, headers=headers).status_code


@pytest.mark.parametrize(("method", "path"), FIELDS)
def test_an_odd_value_is_a_page_with_words(
    console: ConsoleClient, folder: Path, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    monkeypatch.chdir(folder)
    others, names = FIELDS[method, path]
    for name in names.split():
        for odd in ODD:
            body = "&".join([*(f"{key}={value}" for key, value in others.items() if key != name), f"{name}={odd}"])
            assert status(console.client, method, path, body) < 500, body


def test_a_run_that_no_name_can_have_is_not_found(console: ConsoleClient) -> None:
    for route in console.client.app.routes:  # type: ignore[attr-defined]
        for place in route.param_convertors if isinstance(route, Route) else ():
            for odd in ODD:
                address = route.path
                for each, value in PLACES.items():
                    address = address.replace(f"{{{each}}}", odd if each == place else value)
                code = status(console.client, min(route.methods or {"GET"}), address)
                assert code in {303, 400, 404, 405} or not odd.strip("."), address


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
    pipe, output = tmp_path / "pipe.yaml", tmp_path / f"begun{OUTPUT}"
    for file in (pipe, tmp_path / f"run{TRACE}", tmp_path / f"other{SETUP}", output):
        os.mkfifo(file)
    Setup().write(tmp_path / f"begun{SETUP}")

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
