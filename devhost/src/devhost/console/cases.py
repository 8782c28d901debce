"""`/runs/NAME/keep`: keeps a run as a case of a suite."""

import re
import secrets
import shutil
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from textwrap import indent

import yaml
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.status import HTTP_422_UNPROCESSABLE_CONTENT

from devhost.console.folder import refusal
from devhost.console.found import CASE, find, shortened
from devhost.console.setup import typed, typed_path
from devhost.console.web import console_of, posted
from devhost.errors import HostError, SuiteError
from devhost.evaluation.suite import Suite
from devhost.expected import Observed
from devhost.files import BESIDE_A_TRACE
from devhost.protocol.wire import JsonObject
from devhost.recording.case import readable, recorded_case, runs_of, strategy_of, write_case
from devhost.recording.files import KeptFiles
from devhost.recording.turns import tool_calls
from devhost.text import read_file
from devhost.trace.lines import Trace, read_trace
from devhost.trace.runs import run_of

# Adds a case at the end of a file of cases; all that is there stays as it is, with its comments and its order.
#
# A file to which nothing can be added so is refused, and keeps its bytes.

CASES, CASES_FILE = "cases", "cases.yaml"


def names_in(file: Path) -> list[str]:
    """Of its cases; none of a file that is not there yet. HostError for one that cannot be read."""
    return [case.name for case in Suite.read(file).cases] if file.exists() else []


def append_case(file: Path, case: JsonObject) -> None:
    """The new file takes the old one's place only when it reads as the old cases and this one."""
    before = names_in(file)
    written = _added(file, case) if before else readable({CASES: [case]})
    fresh = file.with_name(f".{file.stem}-{secrets.token_hex(4)}{file.suffix}")
    try:
        fresh.write_bytes(written.encode())
        after = [each.name for each in Suite.read(fresh).cases]
        if after != [*before, case["name"]]:
            raise SuiteError(_cannot(file, "the case would not be its last one"))
        fresh.replace(file)
    except OSError as error:
        raise SuiteError(f"{file} cannot be written: {error.strerror}") from error
    except HostError as error:
        raise SuiteError(str(error).replace(str(fresh), str(file))) from error
    finally:
        fresh.unlink(missing_ok=True)


def _added(file: Path, case: JsonObject) -> str:
    """As bytes in UTF-8, so that the ends of lines stay as they are."""
    text = read_file(file).decode()
    whole = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(whole, yaml.MappingNode):
        raise SuiteError(_cannot(file, "it is not a mapping"))
    key, cases = whole.value[-1]
    if key.value != CASES:
        raise SuiteError(_cannot(file, f"its last key is {key.value!r}: move {CASES} to the end"))
    if cases.flow_style:
        raise SuiteError(_cannot(file, f"{CASES} stands in brackets: write a line with - for each"))
    entry = indent(readable([case]), " " * cases.start_mark.column)
    return f"{text}{'' if text.endswith('\n') else '\n'}{entry}"


def _cannot(file: Path, why: str) -> str:
    return f"{file}: no case can be added at its end: {why}"


# What is expected of a run that becomes a case.

LONGEST_PART, LONGEST_NAME = 100, 60
"""Characters of what is suggested."""
EXPECTED = ("text", "calls", "stop_reason", "sources")
"""The fields of the form, each with an expectation a line: parts of the answer, tools in the order of their calls, the
stop reason, and parts of the titles of sources that are cited."""
TICK = "expect."
"""Before the name of a field: whether it is expected."""


def is_flow(trace: Trace) -> bool:
    return trace.header.command == "flow"


def true_of(trace: Trace, file: Path) -> Mapping[str, str]:
    """The form's values: what came of the last conversation, ticked where it was right.

    A call that failed is left out. Of a run that did not come to its end, neither answer nor stop reason is ticked.
    """
    runs = runs_of(trace, file)
    ended = [run_of(run, strategy_of(trace, run)) for run in runs]
    observed, made = Observed.of(ended), [call for run in runs for call in tool_calls(run.calls)]
    first = next((line.strip() for line in observed.text.splitlines() if line.strip()), "")
    values = {
        "text": first[:LONGEST_PART].strip(),
        "calls": "\n".join(call.name for call in made if not call.error),
        "stop_reason": observed.stop_reason,
        "sources": "\n".join(dict.fromkeys(observed.cited)),
    }
    is_right = ended[-1].ending.level == "good" or bool(ended[-1].outputs.pending_calls)
    ticked = [name for name in EXPECTED if values[name] and (is_right or name == "calls")]
    return {**values, **{f"{TICK}{name}": "yes" for name in ticked}}


def as_expected(given: Mapping[str, str]) -> JsonObject:
    """As a case has it under `expect`: what is ticked, and not empty."""
    lines = {name: _lines(given.get(name, "")) if given.get(f"{TICK}{name}") == "yes" else [] for name in EXPECTED}
    whole: JsonObject = {
        "text": {"contains": lines["text"]},
        "calls": {"in_order": lines["calls"]},
        "stop_reason": "".join(lines["stop_reason"]),
        "sources": {"cited": lines["sources"]},
    }
    return {name: whole[name] for name in EXPECTED if lines[name]}


def suggested_name(question: str, taken: Sequence[str]) -> str:
    """That no other case has."""
    words = _begin(" ".join(question.split())) or "case"
    number = next(number for number in range(1, len(taken) + 2) if _numbered(words, number) not in taken)
    return _numbered(words, number)


def _begin(words: str) -> str:
    """Whole words, if there are blanks between them, without the punctuation at the end."""
    if len(words) > LONGEST_NAME:
        words = words[: LONGEST_NAME + 1].rpartition(" ")[0] or words[:LONGEST_NAME]
    while words and unicodedata.category(words[-1]) in {"Po", "Pd", "Pc", "Ps", "Pi", "Zs"}:
        words = words[:-1]
    return words


def _numbered(words: str, number: int) -> str:
    return words if number == 1 else f"{words} ({number})"


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


# Keeps a run as a case: its recorded script in a file, and its expectations in a file of cases.
#
# If anything cannot be written, nothing stays of it.

LONGEST = 120
"""Characters of a case's name."""
LONGEST_FILE = 200
"""Bytes of the name of a file of cases: file systems allow 255, and the files beside it have longer names."""


@dataclass(frozen=True)
class Kept:
    case: str
    file: Path
    script: Path
    lacks: tuple[str, ...]
    """A sentence for each thing of the run that the case does not have."""


def mistakes_of(name: str, file: Path) -> dict[str, str]:
    """By field, before anything is written."""
    found = {}
    if not name or len(name) > LONGEST:
        found["name"] = f"a case needs a name of 1 to {LONGEST} characters"
    if len(bytes(Path(file.name))) > LONGEST_FILE:
        found["file"] = f"the name of the file is too long: it may have {LONGEST_FILE} bytes"
    elif why := refusal(file):
        found["file"] = why
    elif file.suffix not in {".yaml", ".yml"} or file.is_dir():
        found["file"] = "name a file that ends with .yaml"
    elif not file.parent.is_dir():
        found["file"] = f"there is no folder {file.parent}"
    else:
        try:
            taken = names_in(file)
        except (HostError, OSError, ValueError) as error:
            return {**found, "file": str(error)}
        if name in taken:
            found["name"] = f"{file} has a case of this name already"
    return found


def keep(file_of_trace: Path, name: str, file: Path, given: Mapping[str, str]) -> Kept:
    """HostError if the run cannot be recorded, or the file of cases cannot be added to.

    `given`: the form. A flow's script expects of each turn what it came to.
    """
    script = _free(file.parent, name)
    copies = script.absolute().with_suffix(BESIDE_A_TRACE)
    try:
        trace = read_trace(file_of_trace)
        case = recorded_case(trace, file_of_trace, KeptFiles(file_of_trace, script))
        write_case(case, script)
        expected = {} if is_flow(trace) else {"expect": as_expected(given)}
        append_case(file, {"name": name, "script": script.name, **expected})
    except (HostError, OSError, ValueError) as error:
        script.unlink(missing_ok=True)
        shutil.rmtree(copies, ignore_errors=True)
        if isinstance(error, HostError):
            raise
        raise SuiteError(f"{file}: {error}") from error
    return Kept(name, file, script, case.lacks)


def _free(folder: Path, name: str) -> Path:
    """A path for the script that no file has, nor the folder of its files."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:60] or "case"
    number = 1
    while True:
        script = folder / f"{words}{'' if number == 1 else f'-{number}'}{CASE}"
        if not script.exists() and not script.with_suffix(BESIDE_A_TRACE).exists():
            return script
        number += 1


# The pages.


def form(request: Request) -> Response:
    """Filled with what was true of the run."""
    console = console_of(request)
    file = console.folder.trace(request.path_params["name"])
    trace = read_trace(file)
    cases = shortened(console.folder.path / CASES_FILE)
    try:
        taken = names_in(cases)
    except (HostError, OSError, ValueError):
        taken = []  # said when the form is sent
    case = suggested_name(console.title(request.path_params["name"]), taken)
    expected = {} if is_flow(trace) else true_of(trace, file)
    return _page(request, {"name": case, "file": str(cases), **expected}, {})


@posted
def submit(request: Request, given: Mapping[str, str]) -> Response:
    console, name = console_of(request), request.path_params["name"]
    trace, case, cases = console.folder.trace(name), given.get("name", "").strip(), typed_path(given.get("file", ""))
    mistakes = mistakes_of(case, cases)
    if not mistakes:
        try:
            kept = keep(trace, case, cases, given)
        except HostError as error:
            mistakes = {"file" if isinstance(error, SuiteError) else "": str(error)}
        else:
            command = typed(("eval", str(cases), "--case", escape(case)))
            return console.page("kept.html.j2", name=name, title=console.title(name), kept=kept, command=command)
    return _page(request, given, mistakes)


def _page(request: Request, values: Mapping[str, str], mistakes: Mapping[str, str]) -> Response:
    console, name = console_of(request), request.path_params["name"]
    status = HTTP_422_UNPROCESSABLE_CONTENT if mistakes else 200
    return console.page(
        "keep.html.j2",
        status,
        name=name,
        title=console.title(name),
        is_flow=is_flow(read_trace(console.folder.trace(name))),
        values=values,
        known=find(console.plugin, console.folder.path).of("suite"),
        mistakes=mistakes,
    )


ROUTES = (Route("/runs/{name}/keep", form), Route("/runs/{name}/keep", submit, methods=["POST"]))
