"""`/runs/NAME/keep`: keeps a run as a case of a suite."""

import shlex
from collections.abc import Mapping
from glob import escape
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.status import HTTP_422_UNPROCESSABLE_CONTENT

from devhost.console.cases import Expecting, keep, mistakes_of, names_in, observed_of, suggested_name
from devhost.console.runs import typed_path
from devhost.console.suites import CASES, cases_files, shortened
from devhost.console.views.console import Console, console_of, typed
from devhost.errors import HostError, SuiteError
from devhost.recording.case import runs_of
from devhost.trace.lines import read_trace


def form(request: Request) -> Response:
    """Filled with what was true of the run."""
    console, name = console_of(request), request.path_params["name"]
    file = console.folder.trace(name)
    trace = read_trace(file)
    cases = shortened(console.folder.path / CASES)
    case = suggested_name(runs_of(trace, file)[0].question, _taken(cases))
    return _page(console, name, case, cases, Expecting.of(observed_of(trace, file)))


async def submit(request: Request) -> Response:
    return await run_in_threadpool(_answer, console_of(request), request.path_params["name"], await typed(request))


def _answer(console: Console, name: str, given: Mapping[str, str]) -> Response:
    trace = console.folder.trace(name)
    case, cases = given.get("name", "").strip(), typed_path(given.get("file", ""))
    expecting = Expecting.read(given)
    mistakes = mistakes_of(case, cases)
    if not mistakes:
        try:
            kept = keep(trace, case, cases, expecting)
        except HostError as error:
            mistakes = {"file" if isinstance(error, SuiteError) else "": str(error)}
        else:
            command = shlex.join(("devhost", "eval", str(cases), "--case", escape(case)))
            return console.page("kept.html.j2", name=name, kept=kept, command=command)
    return _page(console, name, case, cases, expecting, mistakes)


def _page(  # noqa: PLR0913, PLR0917 - what the form holds
    console: Console, name: str, case: str, cases: Path, expecting: Expecting, mistakes: Mapping[str, str] | None = None
) -> Response:
    return console.page(
        "keep.html.j2",
        HTTP_422_UNPROCESSABLE_CONTENT if mistakes else 200,
        name=name,
        case=case,
        cases=cases,
        known=cases_files(console.folder.path),
        expecting=expecting,
        mistakes=mistakes or {},
    )


def _taken(file: Path) -> list[str]:
    try:
        return names_in(file)
    except (HostError, OSError, ValueError):
        return []  # said when the form is sent


ROUTES = (Route("/runs/{name}/keep", form), Route("/runs/{name}/keep", submit, methods=["POST"]))
