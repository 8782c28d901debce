"""The list of suites, and the page of one suite that shows its last evaluation and starts the next."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import chain
from pathlib import Path
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response

from devhost.console.folder import OUTPUT, changed_at, last_printed
from devhost.console.found import Kind, find, own_tools, shortened
from devhost.console.setup import INSTRUCTION, Values, path_in, typed
from devhost.console.web import NOTHING_NEW, Console, version_of
from devhost.errors import HostError, SuiteError
from devhost.evaluation.suite import Suite
from devhost.evaluation.table import Evaluation, read_evaluation
from devhost.evaluation.versus import compared
from devhost.text import load_yaml, real_path
from devhost.words import in_a_line

MISTAKE = 2
"""The exit code of a command that stopped at a mistake before it began."""


@dataclass(frozen=True)
class _Evaluating:
    """A file of cases, with what is needed to show and start its evaluation."""

    console: Console
    file: Path

    @classmethod
    def of(cls, console: Console, given: Values) -> "_Evaluating":
        if not given.get("file"):
            raise SuiteError("the address names no file of cases: choose one of the list of suites")
        return cls(console, shortened(Path(given["file"])))

    @cached_property
    def suite(self) -> Suite:
        return Suite.read(self.file)

    @property
    def results(self) -> Path:
        return self.file.with_suffix(".results.jsonl")

    @property
    def key(self) -> str:
        """The name of the child process. No run has this name."""
        return f"evaluation-{self.file.stem}-{sha256(bytes(real_path(self.file))).hexdigest()[:8]}"

    @property
    def instruction(self) -> str:
        """The instruction for all cases; empty if the file has none."""
        value = self.suite.params.get(INSTRUCTION)
        if isinstance(value, str):
            return value
        return ""

    @cached_property
    def plugins(self) -> Sequence[Path]:
        return find(self.console.plugin, self.console.folder.path).plugins

    def arguments(self, asked: Values) -> Iterator[str]:
        """Yields the arguments of `devhost eval`, with an instruction only if it differs from the one in the file."""
        suite = self.suite
        yield from ("eval", str(suite.file))
        instruction = asked.get(INSTRUCTION, self.instruction)
        if instruction != self.instruction:
            yield from ("--param", f"{INSTRUCTION}={instruction}")
        if plugin := path_in(asked, "plugin") or next(iter(self.plugins), None):  # flows may need no plugin
            yield from ("--plugin", str(plugin))
        if not (suite.flows or suite.tools or suite.example):
            yield from chain.from_iterable(("--tools", str(folder)) for folder in own_tools(suite.file))
        if asked.get("real") != "yes":
            yield "--scripted"
        if asked.get("do") == "fresh":
            yield "--fresh"


LISTED: Sequence[tuple[str, Kind, str]] = (
    ("Files of cases", "suite", ""),
    ("Agents: each script that expects something is a case", "script", "expect"),
    ("Flows: each script is a case", "flow script", ""),
)


def suites(console: Console, _asked: Values) -> Response:
    things = find(console.plugin, console.folder.path)
    groups = [
        (f"{whose}{title}", _titled(things.of(kind, own=not whose), key))
        for whose in ("", "Examples: ")
        for title, kind, key in LISTED
    ]
    return console.page("suites.html.j2", groups=groups)


def _titled(files: Sequence[Path], key: str) -> list[tuple[str, Path, str]]:
    """Returns a unique title, the file, and its path from the current folder, for each file that has the key.

    An empty key selects all files.
    """
    found = []
    for file in files:
        try:
            written = load_yaml(file)
        except HostError:  # the page of the file reports the error
            written = {}
        if not key or key in written:
            title = written.get("description") or written.get("query") or file.stem
            found.append((in_a_line(title), file, os.path.relpath(file)))
    times = Counter(title for title, _, _ in found)
    listed = []
    for title, file, path in found:
        own = ""
        if times[title] > 1:
            own = f" ({file.stem})"
        listed.append((f"{title}{own}", file, path))
    return listed


def one_suite(console: Console, asked: Values) -> Response:
    """Shows a suite and its last evaluation. `kept` in the address names a case that was just added to the file."""
    shown = _Evaluating.of(console, asked)
    results = shown.results
    child = console.children.of(shown.key)
    version = version_of(child and child.exit_code, changed_at(results))
    if asked.get("seen") == version:
        return Response(status_code=NOTHING_NEW)
    goes_on = child is not None and child.exit_code is None
    problem = ""
    if child is not None and child.exit_code == MISTAKE:
        problem = last_printed(child.output)
    given, before = console.evaluations.get(shown.key, ({}, None))
    evaluation: Evaluation | None = None
    try:
        evaluation = None
        if results.is_file():
            evaluation = read_evaluation(results)
    except SuiteError as error:
        problem = problem or str(error)
    earlier = None
    if before is not None and before.is_finished:
        earlier = before
    if goes_on and evaluation == earlier:  # the new evaluation has not written any results yet
        evaluation = None
    return console.page(
        "suite.html.j2",
        suite=shown.suite,
        kept=asked.get("kept", ""),
        instruction=given.get(INSTRUCTION, shown.instruction),
        plugins=shown.plugins,
        given=given,
        goes_on=goes_on,
        evaluation=evaluation,
        comparison=compared(earlier, evaluation) if earlier and evaluation and evaluation != earlier else None,
        problem=problem,
        command=typed(shown.arguments(given)),
        version=version,
    )


def change(console: Console, given: Values) -> Response:
    """Stops or starts an evaluation, as the field `do` says.

    "stop" keeps the results so far, as Ctrl-C does. "run" continues an evaluation, and "fresh" starts it over.
    """
    shown = _Evaluating.of(console, given)
    if given.get("do") in {"run", "fresh"}:
        asked = {name: given[name] for name in (INSTRUCTION, "plugin", "real", "do") if name in given}
        before = None
        if shown.results.is_file():
            before = read_evaluation(shown.results)
        folder = console.folder
        command = (*shown.arguments(asked), "--traces", str(folder.path))
        console.children.start(shown.key, command, folder.beside(shown.key, OUTPUT))
        console.evaluations[shown.key] = asked, before
    elif child := console.children.of(shown.key):
        child.stop()
    return RedirectResponse(f"/suite?{urlencode({'file': str(shown.file)})}", 303)
