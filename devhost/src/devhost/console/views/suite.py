"""`/suites`: the files of cases; `/suite?file=PATH`: one of them, its last evaluation, and the next one."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from devhost.cli.options.hosting_options import ModelOptions
from devhost.console.children import Child
from devhost.console.pages.render import Part, live_part
from devhost.console.runs import OUTPUT, refusal, typed_path
from devhost.console.suites import (
    INSTRUCTION,
    MOST_REPEATS,
    Asked,
    Standing,
    instruction_in,
    instruction_of,
    known_suites,
    piece_id,
    results_of,
    shortened,
    standing,
    version,
)
from devhost.console.views.console import Console, console_of
from devhost.errors import ConsoleError, HostError
from devhost.evaluation.suite import Suite
from devhost.text import real_path


def suites(request: Request) -> Response:
    return _suites(console_of(request))


def one_suite(request: Request) -> Response:
    """A file that cannot be read is said beside the field in which paths are typed."""
    console = console_of(request)
    typed = request.query_params.get("file", "").strip()
    try:
        read = Suite.read(_file(typed))
    except (HostError, OSError, ValueError) as error:
        return _suites(console, typed, str(error))
    chosen = set(request.query_params.getlist("case")) & {case.name for case in read.cases}
    return _suite(console, read, Asked(cases=tuple(chosen)))


async def run(request: Request) -> Response:
    return await run_in_threadpool(_run, console_of(request), await request.form())


def _run(console: Console, form: FormData) -> Response:
    file = _file(_text(form, "file"))
    suite = Suite.read(file)
    asked = _asked(form, suite)
    if mistakes := asked.mistakes():
        return _suite(console, suite, asked, mistakes)
    child = _child(console, file)
    if child is None or child.exit_code is not None:
        asked = replace(asked, against_last=_standing(console, file).is_finished)
        console.start_child(_key(file), asked.arguments(file, console.plugin), _output(console, file))
    return RedirectResponse(_address(file), 303)


async def command(request: Request) -> Response:
    """What the form would start, as text."""
    return await run_in_threadpool(_told, console_of(request), await request.form())


def _told(console: Console, form: FormData) -> Response:
    suite = Suite.read(_file(_text(form, "file")))
    asked = replace(_asked(form, suite), against_last=_standing(console, suite.file).is_finished)
    return PlainTextResponse(_command(None, suite, asked, console))


async def stop(request: Request) -> Response:
    """As Ctrl-C does: what has a result keeps it."""
    console = console_of(request)
    file = _file(_text(await request.form(), "file"))
    child = _child(console, file)
    if child is not None:
        child.stop()
    return RedirectResponse(_address(file), 303)


def events(request: Request) -> Response:
    console = console_of(request)
    suite = Suite.read(_file(request.query_params.get("file", "")))
    child = _child(console, suite.file)
    return live_part(lambda: _part(console, suite), lambda: version(suite.file, child), console.ending)


def _asked(form: FormData, suite: Suite) -> Asked:
    several = {name: [str(each) for each in form.getlist(name)] for name in ("case", "column")}
    return Asked.read({name: _text(form, name) for name in form}, several, suite)


def _suites(console: Console, typed: str = "", mistake: str = "") -> Response:
    found = known_suites(console.folder.path, console.plugin)
    return console.page("suites.html.j2", 400 if mistake else 200, files=found, typed=typed, mistake=mistake)


def _suite(console: Console, suite: Suite, asked: Asked, mistakes: Mapping[str, str] | None = None) -> Response:
    child = _child(console, suite.file)
    now = _standing(console, suite.file)
    last = _last_instruction(suite, child, now)
    return console.page(
        "suite.html.j2",
        400 if mistakes else 200,
        suite=suite,
        asked=asked,
        instruction=last if asked.instruction is None else asked.instruction,
        instruction_of_file=instruction_of(suite),
        mistakes=mistakes or {},
        standing=now,
        part=_filled(console, suite, now),
        command=_command(child, suite, replace(asked, against_last=now.is_finished), console),
        can_be_real=not ModelOptions().asks_the_script(os.environ),
        most_repeats=MOST_REPEATS,
    )


def _part(console: Console, suite: Suite) -> Part:
    """What the runs of a case hold comes in pieces."""
    now = _standing(console, suite.file)
    html = console.pages.render("evaluated.html.j2", standing=now, suite=suite, pieces={}, piece_id=piece_id)
    pieces = {piece_id(*key): piece for key, piece in _pieces(console, suite.file, now).items()}
    return Part(html, now.goes_on, pieces)


def _filled(console: Console, suite: Suite, now: Standing) -> str:
    """With the pieces in their places, as a page without scripts needs it."""
    pieces = {key: Markup(html) for key, html in _pieces(console, suite.file, now).items()}  # noqa: S704 - rendered
    return console.pages.render("evaluated.html.j2", standing=now, suite=suite, pieces=pieces, piece_id=piece_id)


def _pieces(console: Console, file: Path, now: Standing) -> Mapping[tuple[str, str], str]:
    if now.summary is None:
        return {}
    return console.evaluations.of(results_of(file)).pieces(
        now.summary, lambda cell: console.pages.render("evaluated_case.html.j2", cell=cell)
    )


def _standing(console: Console, file: Path) -> Standing:
    return standing(console.evaluations.of(results_of(file)), _child(console, file))


def _command(child: Child | None, suite: Suite, asked: Asked, console: Console) -> str:
    """Of what was started last, or else of what would be."""
    arguments = asked.arguments(suite.file, console.plugin) if child is None else child.arguments
    return shlex.join(("devhost", *arguments))


def _last_instruction(suite: Suite, child: Child | None, now: Standing) -> str:
    """What the last evaluation had, so that a change goes on from there; it may have no results yet."""
    if child is not None:
        changed = instruction_in(child.arguments)
        return instruction_of(suite) if changed is None else changed
    columns = {} if now.evaluation is None else now.evaluation.header.columns
    params = next(iter(columns.values()), {}).get("params")
    text = params.get(INSTRUCTION) if isinstance(params, dict) else None
    return text if isinstance(text, str) else instruction_of(suite)


def _file(typed: str) -> Path:
    """ConsoleError for a path that no file can have."""
    file = shortened(typed_path(typed))
    if why := refusal(file):
        raise ConsoleError(why)
    return file


def _key(file: Path) -> str:
    """The name of its child; no run has it."""
    return f"evaluation-{file.stem}-{sha256(bytes(real_path(file))).hexdigest()[:8]}"


def _child(console: Console, file: Path) -> Child | None:
    """What evaluates the file, if this console started it."""
    return console.children.of(_key(file))


def _output(console: Console, file: Path) -> Path:
    return console.folder.path / f"{_key(file)}{OUTPUT}"


def _address(file: Path) -> str:
    return f"/suite?{urlencode({'file': str(file)})}"


def _text(form: FormData, name: str) -> str:
    value = form.get(name)
    return value if isinstance(value, str) else ""


ROUTES = (
    Route("/suites", suites),
    Route("/suite", one_suite),
    Route("/suite/events", events),
    Route("/suite/run", run, methods=["POST"]),
    Route("/suite/command", command, methods=["POST"]),
    Route("/suite/stop", stop, methods=["POST"]),
)
