"""`/suites`: the files of cases; `/suite?file=PATH`: one of them, its last evaluation, and the next one."""

import os
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from devhost.console.children import Child
from devhost.console.evaluations import (
    MOST_REPEATS,
    Asked,
    Evaluated,
    Standing,
    instruction_of,
    results_of,
)
from devhost.console.folder import OUTPUT, last_printed, refusal
from devhost.console.found import find, shortened
from devhost.console.setup import INSTRUCTION, typed, typed_path
from devhost.console.web import Console, Parts, Told, changed_at, console_of, live
from devhost.errors import ConsoleError, HostError
from devhost.evaluation.results import Cell, previous_of
from devhost.evaluation.suite import Suite
from devhost.hosting import ModelOptions
from devhost.text import real_path


@dataclass(frozen=True)
class _Page:
    """A file of cases in its console."""

    console: Console
    file: Path

    @cached_property
    def suite(self) -> Suite:
        return Suite.read(self.file)

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
        return self.console.evaluations.of(real_path(results_of(self.file)))

    @property
    def address(self) -> RedirectResponse:
        return RedirectResponse(f"/suite?{urlencode({'file': str(self.file)})}", 303)

    def answer(self, asked: Asked, *, was_sent: bool = True) -> Response:
        """`was_sent`: by the form; before, the command is the one that was started last."""
        now = self.evaluated.standing(self.child)
        last = self._last_instruction(now)
        arguments = replace(asked, against_last=now.is_finished).arguments(self.file, self.console.plugin)
        return self.console.page(
            "suite.html.j2",
            400 if asked.mistakes and was_sent else 200,
            suite=self.suite,
            asked=asked,
            instruction=last if asked.instruction is None else asked.instruction,
            instruction_of_file=instruction_of(self.suite),
            mistakes=asked.mistakes,
            standing=now,
            part=Markup(self.part(now, Told())),  # noqa: S704 - rendered
            command=typed(arguments if was_sent or self.child is None else self.child.arguments),
            can_be_real=not ModelOptions().asks_the_script(os.environ),
            most_repeats=MOST_REPEATS,
        )

    def part(self, now: Standing, told: Told) -> str:
        cells = () if now.summary is None else self.evaluated.cells(now.summary, self._cell)
        pieces = [told.piece(name, html) for name, html in cells]
        return self.console.render("evaluated.html.j2", standing=now, suite=self.suite, pieces=pieces)

    def _cell(self, cell: Cell, name: str) -> str:
        return self.console.render("evaluated_case.html.j2", cell=cell, name=name)

    def _last_instruction(self, now: Standing) -> str:
        """What the last evaluation had, so that a change goes on from there; it may have no results yet."""
        file, begin = instruction_of(self.suite), f"{INSTRUCTION}="
        if self.child is not None:
            given = (value for option, value in pairwise(self.child.arguments) if option == "--param")
            return next((value.removeprefix(begin) for value in given if value.startswith(begin)), file)
        columns = {} if now.evaluation is None else now.evaluation.header.columns
        params = next(iter(columns.values()), {}).get("params")
        text = params.get(INSTRUCTION) if isinstance(params, dict) else None
        return text if isinstance(text, str) else file


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
        page = _page(console, given.get("file"))
        cases = tuple(case.name for case in page.suite.cases if case.name in given.getlist("case"))
    except (HostError, OSError, ValueError) as error:
        return _suites(console, given.get("file", "").strip(), str(error))
    return page.answer(Asked(cases=cases), was_sent=False)


async def change(request: Request) -> Response:
    return await run_in_threadpool(_change, console_of(request), await request.form())


def _change(console: Console, form: FormData) -> Response:
    """`do`: "stop", which keeps what has a result, as Ctrl-C does; "run"; or the page of what the form holds."""
    page = _page(console, form.get("file"))
    child = page.child
    if form.get("do") == "stop":
        if child is not None:
            child.stop()
        return page.address
    given = {name: value for name, value in form.items() if isinstance(value, str)}
    asked = Asked.read(given, {name: list(map(str, form.getlist(name))) for name in ("case", "column")}, page.suite)
    if form.get("do") != "run" or asked.mistakes:
        return page.answer(asked)
    if child is None or child.exit_code is not None:
        asked = replace(asked, against_last=page.evaluated.standing(child).is_finished)
        output = console.folder.path / f"{page.key}{OUTPUT}"
        console.start_child(page.key, asked.arguments(page.file, console.plugin), output)
    return page.address


def events(request: Request) -> Response:
    page = _page(console_of(request), request.query_params.get("file"))
    page.suite  # noqa: B018 - raises for what cannot be read
    results = results_of(page.file)

    def look(told: Told) -> Parts:
        now = page.evaluated.standing(page.child)
        return Parts({"part": page.part(now, told)}, now.goes_on)

    def version() -> object:
        child = page.child
        at = None if child is None else (child.exit_code, bool(last_printed(child.output)))
        return at, changed_at(results, previous_of(results))

    return live(page.console, look, version)


def _page(console: Console, typed: object) -> _Page:
    """ConsoleError for a path that no file can have."""
    file = shortened(typed_path(typed if isinstance(typed, str) else ""))
    if why := refusal(file):
        raise ConsoleError(why)
    return _Page(console, file)


ROUTES = (
    Route("/suites", suites),
    Route("/suite", one_suite),
    Route("/suite", change, methods=["POST"]),
    Route("/suite/events", events),
)
