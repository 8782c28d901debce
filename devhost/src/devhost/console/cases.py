"""Keeps a run as a case of a suite. The case is what `devhost record` would write."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import indent, shorten
from urllib.parse import urlencode

import yaml
from starlette.responses import RedirectResponse, Response

from devhost.console.found import CASE, find, shortened
from devhost.console.setup import Values
from devhost.console.web import Console
from devhost.errors import HostError, SuiteError
from devhost.evaluation.suite import Suite
from devhost.protocol.wire import JsonObject
from devhost.recording.case import conversation_of, readable, recorded_case, write_case
from devhost.recording.turns import KeptFiles, tool_calls
from devhost.text import write_file
from devhost.trace.lines import Trace, read_trace

TICK = "expect."
"""Prefix of the form fields that say which expectations are kept."""


@dataclass(frozen=True)
class Expectation:
    """One expectation that `devhost record` derives from a run."""

    name: str
    written: str
    """The expectation as YAML."""
    is_right: bool
    """Whether the recorded behavior was right, so that the form suggests keeping the expectation."""


def expectations(trace: Trace, file: Path, script: JsonObject) -> list[Expectation]:
    """Returns the expectations that `devhost record` derives from an agent's run.

    The expectation about calls is right if no call failed. All other expectations are right if the run ended well or
    waits for approval.
    """
    if trace.header.command == "flow":
        return []  # in the script of a flow, each turn has its own expectations
    turns = conversation_of(trace, file)
    runs = [run for turn in turns for run in turn.traced]
    last = turns[-1].outcomes[-1]
    ended = last.ending.level == "good" or bool(last.outputs.pending_calls)
    is_right = {"calls": not any(call.error for run in runs for call in tool_calls(run.calls))}
    expected = script.get("expect", {}).items()
    return [Expectation(name, readable({name: value}), is_right.get(name, ended)) for name, value in expected]


def keep(file_of_trace: Path, name: str, cases: Path, ticked: Values) -> None:
    """Writes the case beside the file `cases` and adds its name to that file.

    Of an agent's run, only the expectations in `ticked` are kept.
    """
    script = cases.parent / f"{name}{CASE}"
    if script.exists():
        raise SuiteError(f"{script} exists: give the case another name")
    trace = read_trace(file_of_trace)
    is_flow = trace.header.command == "flow"
    strategy = None if is_flow else conversation_of(trace, file_of_trace)[0].strategy
    if cases.exists():
        with_it = _appended(cases, name, strategy)
    else:
        with_it = f"cases:\n  - {script.name}\n"
    case = recorded_case(trace, file_of_trace, KeptFiles(file_of_trace, script))
    expected = case.script.get("expect", {}).items()
    kept = {key: value for key, value in expected if is_flow or f"{TICK}{key}" in ticked}
    write_case(replace(case, script={**case.script, "expect": kept}), script)
    try:
        write_file(cases, with_it.encode())
    except OSError:
        script.unlink()
        raise


def _appended(cases: Path, name: str, strategy: str | None) -> str:
    """Returns the text of the file with the case added to the end of its list, and otherwise unchanged.

    Raises SuiteError if the file could not be played with this case. `strategy` is the strategy of the run, or `None`
    for the run of a flow.
    """
    suite = Suite.read(cases)
    text = cases.read_text(encoding="utf-8")
    if name in {case.name for case in suite.cases}:
        raise SuiteError(f"{cases} has a case {name!r}: give this one another name")
    if bool(suite.flows) != (strategy is None):
        raise SuiteError(
            f"{cases} plays {'flows' if suite.flows else 'a strategy'} alone: choose another file of cases"
        )
    others = dict.fromkeys(column.strategy for column in suite.columns if column.strategy not in {None, strategy})
    if others:
        raise SuiteError(
            f"{cases} has columns for {', '.join(map(str, others))}, and this run has turns for {strategy} alone, so "
            "that the file could not be played any more: choose another file, or take these columns out of it"
        )
    first = re.search(r"^cases:.*?^( *)- ", text, re.MULTILINE | re.DOTALL)
    with_it = f"{text.rstrip()}\n{indent(f'- {name}{CASE}\n', first[1] if first else '')}"
    try:
        is_added = yaml.safe_load(with_it).get("cases") == [*yaml.safe_load(text).get("cases", []), f"{name}{CASE}"]
    except yaml.YAMLError:
        is_added = False
    if not is_added:
        raise SuiteError(f"{cases}: `cases` must be its last key, with a line for each case that begins with -")
    return with_it


def name_of(words: str) -> str:
    """Returns the words in a form that can be the name of a file."""
    return re.sub(r"[^\w]+", "-", shorten(words, 60, placeholder="")).strip("-") or "case"


def form(console: Console, given: Values, name: str, mistake: str = "") -> Response:
    """Shows the form that keeps a run. After a `mistake`, the form is filled with the values that were `given`."""
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
        case=given.get("name", name_of(title).lower()),
        files=_files(console),
        chosen=given.get("file", ""),
        expected=expected,
        ticked=[each.name for each in expected if (TICK + each.name in given if mistake else each.is_right)],
        lacks=case.lacks,
        mistake=mistake,
    )


def _files(console: Console) -> list[str]:
    """Returns the files of this folder that a case can be added to.

    The first file is the console's own, which may not exist yet.
    """
    own = shortened(console.folder.path / "cases.yaml")
    return list(dict.fromkeys(map(str, (own, *find(console.plugin, console.folder.path).of("suite", own=True)))))


def submit(console: Console, given: Values, name: str) -> Response:
    file = given.get("file", "")
    case = name_of(given.get("name", ""))
    try:
        if file not in _files(console):
            raise SuiteError(f"{file} is not a file of cases in this folder")
        keep(console.folder.trace(name), case, Path(file), given)
    except (HostError, OSError) as error:
        return form(console, given, name, str(error))
    return RedirectResponse(f"/suite?{urlencode({'file': file, 'kept': case})}", 303)
