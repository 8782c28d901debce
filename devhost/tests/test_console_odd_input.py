"""Whatever stands in an address or a form, the console answers with a page that has words, never with a 500."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml
from starlette.routing import Route
from starlette.testclient import TestClient

from devhost.cli.commands import main
from devhost.console.children import Children
from devhost.console.runs import RunFolder
from devhost.console.server.app import application
from devhost.console.views.console import Console
from support.console import HOME, PORT, TOKEN, words
from support.lending import Lender
from support.plugins import PUPPET, TOOLBOX

RUN = "run"
ODD = (
    "a%00b.yaml",
    "%ED%A0%80",
    "..%2F..%2Fetc%2Fpasswd",
    "x" * 5_000 + ".yaml",
    "",
    "~no-such-user%2Fx",
    "%5B" * 2_000,
)
"""As a browser or another program sends them: NUL, a lone surrogate, paths, too long a name, JSON too deep, …"""
PLACES = {"name": RUN, "row": "row-1-1", "left": RUN, "right": RUN}
NEW = (
    "plugin",
    "strategy",
    "source",
    "script",
    "tools",
    "files",
    "real",
    "model",
    "api",
    "completion",
    "p.query",
    "do",
)
AGAIN = ("turn", "at", "answers", "script", "model", "api", "completion", "live", "p.mood", "do")
FIELDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("GET", "/"): ("search", "ending", "page", "token"),
    ("GET", "/list"): ("search", "ending", "page"),
    ("GET", "/delete"): ("run",),
    ("POST", "/delete"): ("run",),
    ("GET", "/compare"): ("run",),
    ("GET", "/runs/{name}/search"): ("words",),
    ("GET", "/runs/{name}/again"): ("turn", "at", "script"),
    ("POST", "/runs/{name}/again"): AGAIN,
    ("POST", "/runs/{name}/again/command"): AGAIN,
    ("POST", "/runs/{name}/keep"): ("name", "file", "text", "calls", "stop_reason", "sources"),
    ("POST", "/runs/{name}/steer"): ("do", "words", "told"),
    ("GET", "/new"): ("plugin", "script", "from"),
    ("POST", "/new"): NEW,
    ("POST", "/new/command"): NEW,
    ("GET", "/suite"): ("file", "case"),
    ("GET", "/suite/events"): ("file",),
    ("POST", "/suite/run"): ("file", "case", "column", "repeats", "instruction", "model", "real", "fresh"),
    ("POST", "/suite/command"): ("file", "case", "column", "repeats", "instruction", "model", "real", "fresh"),
    ("POST", "/suite/stop"): ("file",),
}
"""What the addresses read of their queries and forms. What a form reads of both is sent as one of them."""
READ_NOTHING = {
    ("GET", "/runs/{name}"),
    ("GET", "/runs/{name}/events"),
    ("GET", "/runs/{name}/rows/{row}"),
    ("GET", "/runs/{name}/rows/{row}/text"),
    ("GET", "/runs/{name}/keep"),
    ("GET", "/runs/{name}/state"),
    ("GET", "/compare/{left}/{right}"),
    ("GET", "/compare/{left}/{right}/events"),
    ("GET", "/suites"),
    ("GET", "/static/console.css"),
}
FORM = {"content-type": "application/x-www-form-urlencoded", "origin": HOME}


@pytest.fixture(scope="module")
def folder(lender: Lender, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a run and a file of cases."""
    folder = tmp_path_factory.mktemp("runs")
    plugins = ("--plugin", str(PUPPET), "--tools", str(TOOLBOX), "--script", str(TOOLBOX / "script.yaml"))
    with lender.lends():
        trace = str(folder / f"{RUN}.jsonl")
        assert main(["run", "--query", json.dumps([{"ask": "x"}]), *plugins, "--json", "--trace", trace]) == 0
    case = {"name": "a", "query": "[]", "turns": [{"text": "x"}], "expect": {"text": {"contains": "x"}}}
    (folder / "cases.yaml").write_text(yaml.safe_dump({"cases": [case]}))
    return folder


@pytest.fixture(scope="module")
def browser(folder: Path) -> TestClient:
    """Nothing can be started from it. An error that no page is made of is raised."""
    console = Console(RunFolder(folder), PUPPET, Children(most=0))
    browser = TestClient(application(console, PORT, TOKEN), base_url=HOME, follow_redirects=False)
    browser.get(f"/?token={TOKEN}")
    return browser


def others(path: str, folder: Path) -> dict[str, str]:
    """What a form needs besides an odd value, so that this one is looked at."""
    script = {"source": "script", "script": str(TOOLBOX / "script.yaml"), "tools": str(TOOLBOX)}
    return {
        "/new": {"do": "start", **script},
        "/runs/{name}/again": {"do": "start", "at": "1", "answers": "script", "script": script["script"]},
        "/runs/{name}/keep": {"name": "a case", "file": str(folder / "kept.yaml"), "expect.text": "yes"},
        "/suite/run": {"file": str(folder / "cases.yaml")},
        "/compare": {"run": RUN},
    }.get(path, {})


def bodies(method: str, path: str, folder: Path) -> Iterator[str]:
    for name in FIELDS[method, path]:
        rest = {key: value for key, value in others(path, folder).items() if key != name or path == "/compare"}
        kept = [f"{key}={quote(value)}" for key, value in rest.items()]
        yield from ("&".join([f"{name}={odd}", *kept]) for odd in ODD)


def status(browser: TestClient, method: str, address: str, body: str = "") -> int:
    if method == "GET":
        answer = browser.get(f"{address}?{body}" if body else address)
    else:
        answer = browser.post(address, content=body, headers=FORM)
    leads = answer.status_code == 303 and answer.headers["location"].startswith("/")
    assert leads or words(answer.text) or answer.headers["content-type"] != "text/html; charset=utf-8"
    return answer.status_code


def routes(browser: TestClient) -> list[tuple[str, Route]]:
    found = browser.app.routes  # type: ignore[attr-defined] # of a Starlette
    return [
        (method, route)
        for route in found
        if isinstance(route, Route)
        for method in sorted(route.methods or ())
        if method != "HEAD"
    ]


def test_every_address_is_known_here(browser: TestClient) -> None:
    assert {(method, route.path) for method, route in routes(browser)} == {*FIELDS, *READ_NOTHING}


def test_a_run_that_no_name_can_have_is_not_found(browser: TestClient) -> None:
    for method, route in routes(browser):
        for place in route.param_convertors:
            for odd in ODD:
                address = route.path
                for each, value in PLACES.items():
                    address = address.replace(f"{{{each}}}", odd if each == place else value)
                assert status(browser, method, address) in {303, 400, 404, 405} or not odd.strip("."), (method, address)


@pytest.mark.parametrize(("method", "path"), FIELDS)
def test_an_odd_value_is_a_page_with_words(browser: TestClient, folder: Path, method: str, path: str) -> None:
    for body in bodies(method, path, folder):
        assert status(browser, method, path.replace("{name}", RUN), body) < 500, body


@pytest.mark.parametrize("path", ["%00", "x" * 5_000, "..%2F..%2Frender.py", "%ED%A0%80"])
def test_an_odd_file_is_not_found(browser: TestClient, path: str) -> None:
    assert status(browser, "GET", f"/static/{path}") == 404


@pytest.mark.parametrize("typed", ["a\0b", "x" * 5_000])
@pytest.mark.parametrize("field", ["plugin", "script", "tools", "files"])
def test_a_path_that_the_system_refuses_is_said_beside_its_field(browser: TestClient, field: str, typed: str) -> None:
    page = browser.post("/new", data={"source": "script", "do": "load", field: typed}, headers=FORM).text

    said = page.partition(f'id="wrong-{field}">')[2].partition("</p>")[0]
    assert "a path cannot hold a NUL character" in said or "File name too long" in said
    assert "Errno" not in said


@pytest.mark.parametrize("typed", ["a\0b.yaml", f"{'x' * 5_000}.yaml"])
def test_a_file_of_cases_that_the_system_refuses_is_said_beside_its_field(browser: TestClient, typed: str) -> None:
    answer = browser.post(f"/runs/{RUN}/keep", data={"name": "a case", "file": typed}, headers=FORM)

    assert answer.status_code == 422
    assert 'id="wrong-file"' in answer.text
    for path in ("/suite/run", "/suite/stop"):
        assert browser.post(path, data={"file": typed}, headers=FORM).status_code == 400
    assert 'id="file-error"' in browser.get("/suite", params={"file": typed}).text
