"""`/suites`: the files of cases; `/suite?file=PATH`: one of them, its last evaluation, and the next one."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from glob import escape
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from devhost.console import forms
from devhost.console.children import Child
from devhost.console.evaluations import RESULTS, Evaluated, Standing
from devhost.console.folder import OUTPUT, last_printed, refusal
from devhost.console.found import find, shortened
from devhost.console.setup import INSTRUCTION, Values, lines_in, typed, typed_path
from devhost.console.web import Console, Parts, Told, changed_at, console_of, live, posted
from devhost.errors import ConsoleError, HostError
from devhost.evaluation.results import Cell, previous_of
from devhost.evaluation.suite import Suite
from devhost.text import real_path

# What a person asks of an evaluation, as the command that does it.

MOST_REPEATS = 1_000


def instruction_of(suite: Suite) -> str:
    """For all cases, if the file has one."""
    value = suite.params.get(INSTRUCTION)
    return value if isinstance(value, str) else ""


def wrong_repeats(text: str) -> bool:
    is_number = text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_REPEATS
    return bool(text) and not is_number


def arguments(suite: Suite, asked: Values, plugin: Path | None, *, against_last: bool) -> Iterator[str]:
    """Of `devhost eval`. What is as in the file is left out, and so are all cases, and all columns."""
    yield from ("eval", str(suite.file))
    for name, among in (("case", suite.cases), ("column", suite.columns)):
        known = [each.name for each in among if each.name in lines_in(asked, name)]
        for each in known if len(known) < len(among) else ():
            yield from (f"--{name}", escape(each))  # a name is not a pattern
    instruction, is_real = asked.get(INSTRUCTION, instruction_of(suite)), asked.get("real") == "yes"
    values = {
        "--repeats": asked.get("repeats", ""),
        "--param": "" if instruction == instruction_of(suite) else f"{INSTRUCTION}={instruction}",
        "--model": asked.get("model", "") if is_real else "",
        "--plugin": "" if plugin is None else str(plugin),
        "--against": "last" if against_last else "",
    }
    for option, value in values.items():
        if value:
            yield from (option, value)
    if not is_real:
        yield "--scripted"


# The pages.


@dataclass(frozen=True)
class _Page:
    """A file of cases in its console."""

    console: Console
    file: Path

    @classmethod
    def of(cls, console: Console, given: Mapping[str, str]) -> "_Page":
        """ConsoleError for a path that no file can have."""
        file = shortened(typed_path(given.get("file", "")))
        if why := refusal(file):
            raise ConsoleError(why)
        return cls(console, file)

    @cached_property
    def suite(self) -> Suite:
        return Suite.read(self.file)

    @property
    def results(self) -> Path:
        return real_path(self.file.parent / f"{self.file.stem}{RESULTS}")

    @property
    def key(self) -> str:
        """The name of its child; no run has it."""
        return f"evaluation-{self.file.stem}-{sha256(bytes(real_path(self.file))).hexdigest()[:8]}"

    @property
    def child(self) -> Child | None:
        """What evaluates the file, if this console started it."""
        return self.console.children.of(self.key)

    @property
    def evaluated(self) -> Evaluated:
        return self.console.evaluations.of(self.results)

    @property
    def last(self) -> Values:
        """What the evaluation had that was started last here, so that a change goes on from there."""
        return self.console.asked.get(self.key, {})

    def arguments(self, asked: Values, now: Standing) -> tuple[str, ...]:
        return tuple(arguments(self.suite, asked, self.console.plugin, against_last=now.is_finished))

    def answer(self, asked: Values, status: int = 200) -> Response:
        now, wrong = self.evaluated.standing(self.child), wrong_repeats(asked.get("repeats", ""))
        return self.console.page(
            "suite.html.j2",
            400 if wrong else status,
            suite=self.suite,
            asked=asked,
            chosen={name: lines_in(asked, name) for name in ("case", "column")},
            instruction=asked.get(INSTRUCTION, instruction_of(self.suite)),
            instruction_of_file=instruction_of(self.suite),
            mistakes={"repeats": f"a number from 1 to {MOST_REPEATS:,}, or nothing"} if wrong else {},
            standing=now,
            part=Markup(self.part(now, Told())),  # noqa: S704 - rendered
            command="" if wrong else typed(self.arguments(asked, now)),
            can_be_real=forms.can_be_real(os.environ),
            most_repeats=MOST_REPEATS,
        )

    def part(self, now: Standing, told: Told) -> str:
        cells = () if now.summary is None else self.evaluated.cells(now.summary, self._cell)
        pieces = [told.piece(name, html) for name, html in cells]
        return self.console.render("evaluated.html.j2", standing=now, suite=self.suite, pieces=pieces)

    def _cell(self, cell: Cell, name: str) -> str:
        return self.console.render("evaluated_case.html.j2", cell=cell, name=name)


def suites(request: Request) -> Response:
    return _suites(console_of(request))


def _suites(console: Console, typed: str = "", mistake: str = "") -> Response:
    things = find(console.plugin, console.folder.path)
    groups = (("Files of cases", things.of("suite")), ("Flows, each script a case", things.of("flow script")))
    return console.page("suites.html.j2", 400 if mistake else 200, groups=groups, typed=typed, mistake=mistake)


def one_suite(request: Request) -> Response:
    """A file that cannot be read is said beside the field in which paths are typed."""
    console, given = console_of(request), request.query_params
    try:
        page = _Page.of(console, given)
        page.suite  # noqa: B018 - raises for what cannot be read
    except (HostError, OSError, ValueError) as error:
        return _suites(console, given.get("file", "").strip(), str(error))
    cases = given.getlist("case")
    return page.answer({**page.last, **({"case": "\n".join(cases)} if cases else {})})


@posted
def change(request: Request, given: Mapping[str, str]) -> Response:
    """`do`: "stop", which keeps what has a result, as Ctrl-C does; "run"; or the page of what the form holds."""
    page, asked = _Page.of(console_of(request), given), forms.read_values(given.items())
    child, do = page.child, given.get("do")
    if do == "stop" and child is not None:
        child.stop()
    elif do != "stop" and (do != "run" or wrong_repeats(asked.get("repeats", ""))):
        return page.answer(asked)
    elif do == "run" and (child is None or child.exit_code is not None):
        command = page.arguments(asked, page.evaluated.standing(child))
        folder = page.console.folder.path
        command = (*command, "--traces", str(folder))
        page.console.start_child(page.key, command, folder / f"{page.key}{OUTPUT}")
        page.console.asked[page.key] = {name: asked[name] for name in KEPT if name in asked}
    return RedirectResponse(f"/suite?{urlencode({'file': str(page.file)})}", 303)


KEPT = ("case", "column", "repeats", INSTRUCTION, "real", "model")


def events(request: Request) -> Response:
    page = _Page.of(console_of(request), request.query_params)
    page.suite  # noqa: B018 - raises for what cannot be read

    def look(told: Told) -> Parts:
        now = page.evaluated.standing(page.child)
        return Parts({"part": page.part(now, told)}, now.goes_on)

    def version() -> object:
        child = page.child
        at = None if child is None else (child.exit_code, bool(last_printed(child.output)))
        return at, changed_at(page.results, previous_of(page.results))

    return live(page.console, look, version)


ROUTES = (
    Route("/suites", suites),
    Route("/suite", one_suite),
    Route("/suite", change, methods=["POST"]),
    Route("/suite/events", events),
)
