"""`/new`: choose what to run, edit it, and start it.

The form goes to the same address: `do` says whether to start, to load what was chosen, or to reset a field.
"""

import os
from collections.abc import Iterable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from devhost.console.asking.lines import said
from devhost.console.forms.choices import WAS, Choices
from devhost.console.forms.plan import Plan, planned
from devhost.console.runs.command import child_arguments, typed_command
from devhost.console.runs.folder import OUTPUT, SETUP
from devhost.console.runs.setup import Setup
from devhost.console.views.console import Console, console_of
from devhost.errors import ConsoleError

RESET = "reset "
UNPROCESSABLE = 422


def form(request: Request) -> Response:
    """`from`: the name of a run whose setup fills the form; else the address may choose what the form does."""
    console = console_of(request)
    name = request.query_params.get("from")
    choices = Choices.read(request.query_params.items()) if name is None else _again(console, name)
    return _page(console, planned(choices, console.plugin, os.environ), checked=False)


async def submit(request: Request) -> Response:
    pairs = [(name, value) for name, value in (await request.form()).multi_items() if isinstance(value, str)]
    return await run_in_threadpool(_answer, console_of(request), pairs)


def _answer(console: Console, pairs: Iterable[tuple[str, str]]) -> Response:
    given = dict(pairs)
    do = given.get("do", "load")
    if do.startswith(RESET):
        given.pop(f"p.{do.removeprefix(RESET)}", None)
    plan = planned(Choices.read(given.items()), console.plugin, os.environ)
    if do != "start":
        return _page(console, plan, checked=True)
    if plan.mistakes:
        return _page(console, plan, checked=True, status=UNPROCESSABLE)
    return RedirectResponse(f"/runs/{start(console, plan.setup)}", 303)


def start(console: Console, setup: Setup) -> str:
    """The name of the run that begins. ConsoleError if its process cannot be started."""
    folder = console.folder
    name = folder.new_name(setup.scenario or setup.example or setup.strategy or "run")
    setup.write(folder.beside(name, SETUP))
    try:
        arguments = child_arguments(setup, folder.trace(name))
        child = console.children.start(name, arguments, folder.beside(name, OUTPUT))
    except ConsoleError:
        folder.beside(name, SETUP).unlink()
        folder.beside(name, OUTPUT).unlink(missing_ok=True)
        raise
    child.tell(said(setup.question))
    return name


def _again(console: Console, name: str) -> Choices:
    console.folder.trace(name)
    try:
        return Choices.of(Setup.read(console.folder.beside(name, SETUP)))
    except (OSError, ValueError) as error:
        raise ConsoleError(f"how {name} was started is not known: it was not started from a form") from error


def _page(console: Console, plan: Plan, *, checked: bool, status: int = 200) -> Response:
    """An untouched form shows no mistakes but those of what it leads to."""
    command = typed_command(plan.setup) if plan.plugin is not None and not plan.mistakes else ""
    return console.page("new_run.html.j2", status, plan=plan, command=command, checked=checked, WAS=WAS)


ROUTES = (Route("/new", form), Route("/new", submit, methods=["POST"]))
