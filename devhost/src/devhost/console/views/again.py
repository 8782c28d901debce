"""`/runs/NAME/again`: a run once more, with something changed from a round on."""

from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.status import HTTP_422_UNPROCESSABLE_CONTENT

from devhost.console.again import Changed, ForkPlan, planned_fork
from devhost.console.forms import WAS, after_reset
from devhost.console.runs import typed_fork
from devhost.console.views.console import KEY, Console, console_of, typed


def form(request: Request) -> Response:
    """The address may choose the turn and the round."""
    console, name = console_of(request), request.path_params["name"]
    return _page(
        console, planned_fork(console.folder, name, Changed.read(request.query_params.items()), console.plugin)
    )


async def submit(request: Request) -> Response:
    return await run_in_threadpool(_answer, console_of(request), request.path_params["name"], await typed(request))


def _answer(console: Console, name: str, given: Mapping[str, str]) -> Response:
    do = given.get("do", "start")
    plan = planned_fork(console.folder, name, Changed.read(after_reset(given).items()), console.plugin)
    if do != "start" or plan.mistakes:
        return _page(console, plan, 200 if do != "start" else HTTP_422_UNPROCESSABLE_CONTENT, do)
    return RedirectResponse(f"/compare/{name}/{console.start(given.get(KEY, ''), plan.setup)}", 303)


async def command(request: Request) -> Response:
    """What the form would start, as text; empty while there is a mistake in it."""
    return await run_in_threadpool(_typed, console_of(request), request.path_params["name"], await typed(request))


def _typed(console: Console, name: str, given: Mapping[str, str]) -> Response:
    plan = planned_fork(console.folder, name, Changed.read(given.items()), console.plugin)
    return PlainTextResponse(_command(console, plan))


def _page(console: Console, plan: ForkPlan, status: int = 200, checked: str = "") -> Response:
    """`checked`: what the form was sent for, such as "start" or "check"."""
    command = _command(console, plan)
    return console.page("run_again.html.j2", status, plan=plan, command=command, checked=checked, WAS=WAS)


def _command(console: Console, plan: ForkPlan) -> str:
    return "" if plan.mistakes else typed_fork(plan.setup, console.folder.trace(plan.name))


ROUTES = (
    Route("/runs/{name}/again", form),
    Route("/runs/{name}/again", submit, methods=["POST"]),
    Route("/runs/{name}/again/command", command, methods=["POST"]),
)
