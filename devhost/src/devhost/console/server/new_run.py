"""`/new`: choose what to run, edit it, and start it."""

import os
from collections.abc import Mapping
from dataclasses import replace

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.status import HTTP_422_UNPROCESSABLE_CONTENT

from devhost.console.asking import said
from devhost.console.form_plan import Plan, planned
from devhost.console.forms import WAS, Choices, after_reset
from devhost.console.runs import SETUP, Setup, last_plugin, typed_command
from devhost.console.views.console import KEY, Console, console_of, typed
from devhost.errors import ConsoleError


def form(request: Request) -> Response:
    """`from`: the name of a run whose setup fills the form; else the address may choose what the form does."""
    console = console_of(request)
    name = request.query_params.get("from")
    choices = _chosen(console, request.query_params) if name is None else _again(console, name)
    return _page(console, planned(choices, console.plugin, os.environ))


def _chosen(console: Console, given: Mapping[str, str]) -> Choices:
    """The plugin is the one that was chosen last; a console that was started with another one begins with that."""
    choices = Choices.read(given.items())
    last = last_plugin(console.folder, 0 if console.plugin is None else console.began)
    return replace(choices, plugin=str(last)) if last is not None and not choices.plugin else choices


async def submit(request: Request) -> Response:
    return await run_in_threadpool(_answer, console_of(request), await typed(request))


def _answer(console: Console, given: Mapping[str, str]) -> Response:
    do = given.get("do", "load")
    plan = planned(Choices.read(after_reset(given).items()), console.plugin, os.environ)
    if do != "start":
        return _page(console, plan, checked=do if do == "check" else "")
    if plan.mistakes:
        return _page(console, plan, checked=do, status=HTTP_422_UNPROCESSABLE_CONTENT)
    name = console.start(given.get(KEY, ""), plan.setup, said(plan.setup.question))
    return RedirectResponse(f"/runs/{name}", 303)


async def command(request: Request) -> Response:
    """What the form would start, as text; empty while there is a mistake in it."""
    return await run_in_threadpool(_typed, console_of(request), await typed(request))


def _typed(console: Console, given: Mapping[str, str]) -> Response:
    return PlainTextResponse(_command(planned(Choices.read(given.items()), console.plugin, os.environ)))


def _again(console: Console, name: str) -> Choices:
    console.folder.trace(name)
    try:
        return Choices.of(Setup.read(console.folder.beside(name, SETUP)))
    except (OSError, ValueError) as error:
        raise ConsoleError(f"how {name} was started is not known: it was not started from a form") from error


def _page(console: Console, plan: Plan, *, checked: str = "", status: int = 200) -> Response:
    """`checked`: what the form was sent for, "start" or "check"; before, it shows only mistakes of what was chosen."""
    return console.page("new_run.html.j2", status, plan=plan, command=_command(plan), checked=checked, WAS=WAS)


def _command(plan: Plan) -> str:
    return typed_command(plan.setup) if plan.plugin is not None and not plan.mistakes else ""


ROUTES = (
    Route("/new", form),
    Route("/new", submit, methods=["POST"]),
    Route("/new/command", command, methods=["POST"]),
)
