"""`/runs/NAME/keep`: keeps a run as a case of a suite, as `devhost record` writes it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import indent, shorten

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from devhost.console.found import CASE, find, shortened
from devhost.console.web import Console, console_of, posted
from devhost.errors import HostError, SuiteError
from devhost.evaluation.suite import Suite
from devhost.protocol.wire import JsonObject
from devhost.recording.case import readable, recorded_case, runs_of, strategy_of, write_case
from devhost.recording.files import KeptFiles
from devhost.recording.turns import tool_calls
from devhost.trace.lines import Trace, read_trace
from devhost.trace.runs import run_of

CASES_FILE = "cases.yaml"
TICK = "expect."
"""Before the name of an expectation in the form: whether it is kept."""


@dataclass(frozen=True)
class Expectation:
    name: str
    written: str
    """As YAML."""
    is_right: bool


def expectations(trace: Trace, file: Path, script: JsonObject) -> list[Expectation]:
    """What `devhost record` expects of an agent's run, and whether that was right.

    Calls are right if none failed; the rest if the run came to its end.
    """
    if trace.header.command == "flow":
        return []  # each turn of its script has its own
    runs = runs_of(trace, file)
    last = run_of(runs[-1], strategy_of(trace, runs[-1]))
    ended = last.ending.level == "good" or bool(last.outputs.pending_calls)
    is_right = {"calls": not any(call.error for run in runs for call in tool_calls(run.calls))}
    expected: JsonObject = script.get("expect", {})
    return [Expectation(name, readable({name: value}), is_right.get(name, ended)) for name, value in expected.items()]


def keep(file_of_trace: Path, name: str, cases: Path, dropped: Sequence[str]) -> None:
    """Writes the case beside `cases` and names it there. `dropped`: what is not expected."""
    script = cases.parent / f"{name}{CASE}"
    if script.exists():
        raise SuiteError(f"{script} exists: give the case another name")
    case = recorded_case(read_trace(file_of_trace), file_of_trace, KeptFiles(file_of_trace, script))
    expected = {key: value for key, value in case.script.get("expect", {}).items() if key not in dropped}
    write_case(replace(case, script={**case.script, "expect": expected}), script)
    try:
        _append(cases, script.name)
    except (HostError, OSError):
        script.unlink()
        raise


def _append(cases: Path, script: str) -> None:
    """At the end of the list; what is there stays as it is. SuiteError if that cannot be."""
    if not cases.exists():
        cases.write_text(f"cases:\n  - {script}\n", encoding="utf-8")
        return
    text = cases.read_text(encoding="utf-8")
    before = [case.name for case in Suite.read(cases).cases]
    first = re.search(r"^cases:.*?^( *)- ", text, re.MULTILINE | re.DOTALL)
    entry = indent(f"- {script}\n", first[1] if first else "")
    cases.write_text(f"{text.rstrip()}\n{entry}", encoding="utf-8")
    try:
        if [case.name for case in Suite.read(cases).cases][:-1] == before:
            return
    except HostError:
        pass
    cases.write_text(text, encoding="utf-8")
    raise SuiteError(f"{cases}: write the case at the end of its cases yourself: - {script}")


def name_of(question: str) -> str:
    """A suggestion, which can be the name of a file."""
    return re.sub(r"[^\w]+", "-", shorten(question, 60, placeholder="")).strip("-").lower() or "case"


# The pages.


def form(request: Request) -> Response:
    return _page(request, {}, "")


def _page(request: Request, given: Mapping[str, str], mistake: str) -> Response:
    console, name = console_of(request), request.path_params["name"]
    file = console.folder.trace(name)
    trace = read_trace(file)
    case = recorded_case(trace, file, KeptFiles(file, None))
    expected = expectations(trace, file, case.script)
    title = console.title(name)
    return console.page(
        "keep.html.j2",
        422 if mistake else 200,
        name=name,
        title=title,
        case=given.get("name", name_of(title)),
        files=_files(console),
        chosen=given.get("file", ""),
        expected=expected,
        ticked=[each.name for each in expected if (TICK + each.name in given if given else each.is_right)],
        lacks=case.lacks,
        mistake=mistake,
    )


def _files(console: Console) -> list[str]:
    """Those that a case can go into; the console's own comes first, and may not be there yet."""
    own = shortened(console.folder.path / CASES_FILE)
    return list(dict.fromkeys(map(str, (own, *find(console.plugin, console.folder.path).of("suite")))))


@posted
def submit(request: Request, given: Mapping[str, str]) -> Response:
    console, name = console_of(request), request.path_params["name"]
    file, case = given.get("file", ""), given.get("name", "").strip()
    try:
        if file not in _files(console):
            raise SuiteError(f"{file} is not a file of cases in this folder")
        if not re.fullmatch(r"[\w-]{1,60}", case):
            raise SuiteError("a case needs a name of at most 60 letters, digits, - and _")
        trace = console.folder.trace(name)
        shown = [key.removeprefix("shown.") for key in given if key.startswith("shown.")]
        keep(trace, case, Path(file), [each for each in shown if TICK + each not in given])
    except (HostError, OSError) as error:
        return _page(request, given, str(error))
    return RedirectResponse(f"/suite?file={file}", 303)


ROUTES = (Route("/runs/{name}/keep", form), Route("/runs/{name}/keep", submit, methods=["POST"]))
