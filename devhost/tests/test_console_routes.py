"""Every address of the console is asked here: one that has no line in the tables fails the first test."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from starlette.routing import Mount, Route

from devhost.cli.commands import main
from devhost.console.app import application
from devhost.console.children import Children
from devhost.console.web import TEMPLATES
from devhost.flow.traces import FlowTrace
from devhost.trace.flow import NodeEnded, NodeStarted
from support.console import PORT, TOKEN, ConsoleClient, words
from support.flow_documents import answer, chain, chatflow, llm, start
from support.lending import Lender
from support.plugins import PUPPET, TOOLBOX
from support.tracing import tracing
from test_flow_view import END, FACTS
from test_flow_view import START as BEGIN

TOOL = f"tools={TOOLBOX}&name=draw"


@dataclass(frozen=True)
class Asked:
    address: str
    says: str
    """Words of the answer, or where it leads to."""
    status: int = 200
    values: Mapping[str, str] = field(default_factory=dict)


SHOWN: Mapping[str, Asked] = {
    "/": Asked("/", "Runs"),
    "/new": Asked("/new", "Question"),
    "/runs/{name}": Asked("/runs/run", "Fold all"),
    "/runs/{name}/rows/{row}": Asked("/runs/run/rows/{ROW}", "Prompt"),
    "/runs/{name}/find": Asked("/runs/run/find?words=ROUND", "["),
    "/runs/{name}/again": Asked("/runs/run/again", "Run again with a change"),
    "/runs/{name}/node": Asked("/runs/flow/node?turn=1&node=ask", "Start.topic start.topic tea"),
    "/runs/{name}/keep": Asked("/runs/run/keep", "Keep this run as a case"),
    "/compare": Asked("/compare?run=run&run=run", "/compare/run/run", 303),
    "/compare/{left}/{right}": Asked("/compare/run/run", "Side by side"),
    "/tools": Asked("/tools", "without an agent"),
    "/tool": Asked(f"/tool?{TOOL}", "Draws a picture of a size"),
    "/suites": Asked("/suites", "Suites"),
    "/suite": Asked("/suite?file={RUNS}/cases.yaml", "1 case"),
    "/static/console.css": Asked("/static/console.css", "font"),
}
SENT: Mapping[str, Asked] = {
    "/delete": Asked("/delete", "there is no run", 404, {"run": "gone"}),
    "/new": Asked("/new", "the question is empty", 422, {"do": "start", "p.query": " "}),
    "/runs/{name}/steer": Asked("/runs/run/steer", "is over: start it again", 200, {"do": "say"}),
    "/runs/{name}/again": Asked("/runs/run/again", "choose the script", 422, {"answers": "script"}),
    "/runs/{name}/node": Asked("/runs/flow/node", "no model is configured for", 422, {"node": "ask"}),
    "/runs/{name}/keep": Asked("/runs/run/keep", "is not a file of cases", 422, {"file": "/etc/passwd", "name": "a"}),
    "/tools": Asked("/tools", "give the command or the address", 422),
    "/tool": Asked("/tool", "tool draw needs size", 422, {"do": "call", "tools": str(TOOLBOX), "name": "draw"}),
    "/suite": Asked("/suite", "the address names no file of cases", 400),
}


@pytest.fixture(scope="module")
def folder(lender: Lender, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a run of a strategy, one of a flow, and a file of cases."""
    folder = tmp_path_factory.mktemp("runs")
    run = ("run", "--plugin", str(PUPPET), "--tools", str(TOOLBOX), "--script", str(TOOLBOX / "script.yaml"))
    with lender.lends():
        assert main([*run, "--query", '[{"ask": "tea"}, {"say": "rice"}]', "--trace", str(folder / "run.jsonl")]) == 0
    file = chatflow(folder, [start("topic"), llm("ask", ("user", "{{#start.topic#}}")), answer("x")], chain("start"))
    with tracing(folder / "flow.jsonl", command="flow") as writer:
        begun = NodeStarted("1", BEGIN)
        ended = NodeEnded("1", BEGIN, "succeeded", {}, {"topic": "tea"}, 0.1)
        list(FlowTrace(writer).of_turn(replace(FACTS, file=str(file)), [begun, ended, END]))
    (folder / "cases.yaml").write_text("cases: [{name: a, query: Hi, turns: [{text: Hello}], expect: {}}]\n")
    return folder


@pytest.fixture(scope="module")
def console(folder: Path) -> ConsoleClient:
    """Nothing can be started from it."""
    return ConsoleClient(folder, PUPPET, Children(most=0))


def addresses(console: ConsoleClient, method: str) -> set[str]:
    routes = application(console.console, PORT, TOKEN).routes
    return {route.path for route in routes if isinstance(route, Route) and method in (route.methods or ())}


def test_every_address_of_the_console_is_in_a_table(console: ConsoleClient) -> None:
    others = [route for route in application(console.console, PORT, TOKEN).routes if not isinstance(route, Route)]

    assert addresses(console, "GET") == set(SHOWN), "add the page to SHOWN of this file, with words that it says"
    assert addresses(console, "POST") == set(SENT), "add the form to SENT of this file, with words that it says"
    assert [other.path for other in others if isinstance(other, Mount)] == ["/static"]
    assert len(others) == 1, "an address of another kind needs a test of its own"


@pytest.mark.parametrize("asked", SHOWN.values(), ids=SHOWN)
def test_a_page_is_shown(asked: Asked, console: ConsoleClient, folder: Path) -> None:
    rows = re.findall(r'hx-get="/runs/run/rows/([^"]+)"', console.get("/runs/run"))
    address = asked.address.replace("{ROW}", rows[-1]).replace("{RUNS}", str(folder))

    answer = console.client.get(address)

    assert answer.status_code == asked.status
    assert asked.says in (answer.headers.get("location") or words(answer.text))
    if "<html" in answer.text:
        is_a_page(answer.text)


@pytest.mark.parametrize("asked", SENT.values(), ids=SENT)
def test_a_form_that_cannot_be_obeyed_says_why(asked: Asked, console: ConsoleClient) -> None:
    page = console.post(asked.address, asked.status, **asked.values)

    assert asked.says in words(page)
    is_a_page(page)


def is_a_page(page: str) -> None:
    """With one heading and a title; what a link or a label names is there, and once."""
    names = Counter(re.findall(r' id="([^"]+)"', page))
    assert len(re.findall(r"<h1[ >]", page)) == 1
    assert re.search(r"<title>[^<]+ · devhost</title>", page)
    assert [name for name, times in names.items() if times > 1] == []
    named = re.findall(r' (?:for|aria-controls|data-filters)="([^"]+)"| href="#([^"]+)"', page)
    assert [name for pair in named for name in pair if name and name not in names] == []


def test_every_template_belongs_to_a_page() -> None:
    """One that no page names is left over."""
    sources = [*TEMPLATES.parent.glob("*.py"), *TEMPLATES.glob("*")]
    said = "\n".join(file.read_text(encoding="utf-8") for file in sources)
    assert [file.name for file in TEMPLATES.glob("*") if f'"{file.name}"' not in said] == []
