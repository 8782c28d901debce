"""Whatever stands in an address, a form or a file, the console answers with a page that has words, never a 500."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml
from starlette.routing import Route
from starlette.testclient import TestClient

from devhost.cli.commands import main
from devhost.console.children import Children
from devhost.console.folder import OUTPUT, TRACE
from devhost.console.listing import Index
from devhost.console.run_page import watched
from devhost.console.setup import SETUP, Setup
from devhost.console.web import STATIC, TEMPLATES, Told
from devhost.errors import ConsoleError
from support.console import HOME, ConsoleClient, words
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
    ("GET", "/delete"): ("run",),
    ("POST", "/delete"): ("run",),
    ("GET", "/compare"): ("run",),
    ("GET", "/runs/{name}/search"): ("words",),
    ("GET", "/runs/{name}/again"): ("turn", "at", "script"),
    ("POST", "/runs/{name}/again"): AGAIN,
    ("POST", "/runs/{name}/keep"): ("name", "file", "text", "calls", "stop_reason", "sources"),
    ("POST", "/runs/{name}/steer"): ("do", "words", "told"),
    ("GET", "/new"): ("plugin", "source", "from"),
    ("POST", "/new"): NEW,
    ("GET", "/suite"): ("file", "case"),
    ("GET", "/suite/events"): ("file",),
    ("POST", "/suite"): ("do", "file", "case", "column", "repeats", "instruction", "model", "real", "fresh"),
}
"""What the addresses read of their queries and forms. What a form reads of both is sent as one of them."""
READ_NOTHING = {
    ("GET", "/runs/{name}"),
    ("GET", "/runs/{name}/events"),
    ("GET", "/runs/{name}/rows/{row}"),
    ("GET", "/runs/{name}/rows/{row}/text"),
    ("GET", "/runs/{name}/keep"),
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
        assert (
            main(
                [
                    "run",
                    "--query",
                    json.dumps([{"ask": "halved"}, {"say": "halved"}]),
                    *plugins,
                    "--json",
                    "--trace",
                    trace,
                ]
            )
            == 0
        )
    case = {"name": "a", "query": "[]", "turns": [{"text": "x"}], "expect": {"text": {"contains": "x"}}}
    (folder / "cases.yaml").write_text(yaml.safe_dump({"cases": [case]}))
    return folder


@pytest.fixture(scope="module")
def console(folder: Path) -> ConsoleClient:
    """Nothing can be started from it. An error that no page is made of is raised."""
    return ConsoleClient(folder, PUPPET, Children(most=0))


@pytest.fixture
def browser(console: ConsoleClient) -> TestClient:
    return console.client


def others(path: str, folder: Path) -> dict[str, str]:
    """What a form needs besides an odd value, so that this one is looked at."""
    script = str(TOOLBOX / "script.yaml")
    return {
        "/new": {"do": "start", "source": f"script:{script}"},
        "/runs/{name}/again": {"do": "start", "at": "1", "answers": "script", "script": script},
        "/runs/{name}/keep": {"name": "a case", "file": str(folder / "kept.yaml"), "expect.text": "yes"},
        "/suite": {"do": "run", "file": str(folder / "cases.yaml")},
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


def test_every_file_that_a_page_or_a_script_loads_is_there(browser: TestClient) -> None:
    files = [*TEMPLATES.glob("*"), *STATIC.glob("*.js")]
    named = {name for file in files for name in LOADED.findall(file.read_text(encoding="utf-8"))}

    assert {"page.js", "vendor/htmx.min.js", "console.css"} <= named
    assert [name for name in sorted(named) if browser.get(f"/static/{name}").status_code != 200] == []


LOADED = re.compile(r'(?:"/static/|from "\./)([^"]+)"')


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


LONG_OR_NUL = ("a\0b", "x" * 5_000)
NO_USER = "~there-is-no-such-user/x"


@pytest.mark.parametrize("typed", [*LONG_OR_NUL, NO_USER])
@pytest.mark.parametrize("field", ["plugin", "source", "tools", "files"])
@pytest.mark.parametrize("kind", ["script", "flow"])
def test_a_path_that_leads_nowhere_is_said_beside_its_field(
    console: ConsoleClient, field: str, kind: str, typed: str
) -> None:
    given = {"source": "none", field: f"{kind}:{typed}" if field == "source" else typed}
    page = console.post("/new", 200, do="load", **given)

    said = page.partition(f'id="wrong-{field}">')[2].partition("</p>")[0]
    assert any(words in said for words in ("a path cannot hold a NUL character", "File name too long", NO_USER))
    assert "Errno" not in said


# --- folders and files that others made -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/runs/gone"])
def test_a_folder_that_was_deleted_is_a_page_that_says_so(path: str, tmp_path: Path) -> None:
    assert str(tmp_path / "gone") in ConsoleClient(tmp_path / "gone").get(path, 404 if "runs" in path else 400)


def test_a_setup_that_cannot_be_written_leaves_no_half_of_it(tmp_path: Path) -> None:
    with pytest.raises(ConsoleError, match=r"gone/run\.setup\.json cannot be written: No such file"):
        Setup().write(tmp_path / "gone" / "run.setup.json")


def test_files_that_have_no_end_are_refused(tmp_path: Path) -> None:
    console = ConsoleClient(tmp_path, PUPPET)
    pipe, loop = tmp_path / "pipe.yaml", tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    (tmp_path / "loop.results.jsonl").symlink_to("loop.results.jsonl")
    for name in ("no_trace", "no_output"):
        Setup().write(tmp_path / f"{name}{SETUP}")
    for file in (pipe, *(tmp_path / name for name in (f"no_trace{TRACE}", f"no_output{OUTPUT}", f"none{SETUP}"))):
        os.mkfifo(file)

    console.post("/suite", do="stop", file=str(loop))
    assert "Too many levels" in words(console.get(f"/suite?file={loop}", 400))
    for file in (pipe, Path("/dev/zero")):
        assert NO_FILE in words(console.get(f"/suite?file={file}", 400))
        assert NO_FILE in words(console.post("/suite", 400, do="load", file=str(file)))
    assert NO_FILE in words(console.get("/runs/no_trace", 400))
    assert "The run ended before" in words(console.get("/runs/no_output"))
    assert console.get("/")


NO_FILE = "it is not a regular file"


# --- half a surrogate pair, which JSON and YAML can hold and UTF-8 cannot, is shown as U+FFFD -------------------------

SHOWN = "hal\N{REPLACEMENT CHARACTER}ved"


@pytest.fixture(scope="module")
def halved(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    """With a run whose question, prompt and answer hold it."""
    runs = tmp_path_factory.mktemp("halved")
    (runs / "run.jsonl").write_text((folder / f"{RUN}.jsonl").read_text().replace("halved", r"hal\ud800ved"))
    return ConsoleClient(runs, PUPPET)


@pytest.mark.parametrize(
    "path", ["/", "/delete?run=run", "/runs/run", "/runs/run/again", "/runs/run/keep", "/compare/run/run"]
)
def test_a_page_of_a_run_shows_it(halved: ConsoleClient, path: str) -> None:
    assert SHOWN in halved.get(path)


def test_its_rows_and_its_events_show_it(halved: ConsoleClient) -> None:
    seen = halved.console.readers.of(halved.console.folder.trace("run")).read()
    (shown,) = seen.runs
    row = next(shown.anchor(span) for span in shown.rows if span.label.startswith("scripted"))

    assert SHOWN in halved.get(f"/runs/run/rows/{row}")
    assert SHOWN in halved.get(f"/runs/run/rows/{row}/text")
    assert SHOWN.encode() in watched(halved.console, "run")[0](Told()).html["said"].encode()


def test_the_list_finds_names_that_are_not_utf_8(halved: ConsoleClient) -> None:
    folder = halved.console.folder
    (folder.path / "not-utf-8-\udcff.jsonl").write_text("")

    names = [run.name for run in Index(folder).look(60).runs]

    assert sorted(names) == ["not-utf-8-\udcff", "run"]
