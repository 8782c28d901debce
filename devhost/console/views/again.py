"""`/runs/NAME/again`: a run once more, with something changed from a round on."""

from collections.abc import Iterable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from devhost.console.again.changes import Changed
from devhost.console.again.plan import ForkPlan
from devhost.console.again.planning import planned_fork
from devhost.console.forms.choices import TYPED, WAS
from devhost.console.runs.folder import OUTPUT, SETUP
from devhost.console.runs.fork_command import fork_arguments, typed_fork
from devhost.console.runs.setup import Setup
from devhost.console.views.console import Console, console_of
from devhost.errors import ConsoleError

RESET = "reset "
UNPROCESSABLE = 422


def form(request: Request) -> Response:
    """The address may choose the turn and the round."""
    console, name = console_of(request), request.path_params["name"]
    return _page(
        console, planned_fork(console.folder, name, Changed.read(request.query_params.items()), console.plugin)
    )


async def submit(request: Request) -> Response:
    pairs = [(name, value) for name, value in (await request.form()).multi_items() if isinstance(value, str)]
    return await run_in_threadpool(_answer, console_of(request), request.path_params["name"], pairs)


def _answer(console: Console, name: str, pairs: Iterable[tuple[str, str]]) -> Response:
    given = dict(pairs)
    do = given.get("do", "start")
    if do.startswith(RESET):
        given.pop(f"{TYPED}{do.removeprefix(RESET)}", None)
    plan = planned_fork(console.folder, name, Changed.read(given.items()), console.plugin)
    if do != "start" or plan.mistakes:
        return _page(console, plan, 200 if do != "start" else UNPROCESSABLE)
    return RedirectResponse(f"/compare/{name}/{start(console, plan.setup)}", 303)


def start(console: Console, setup: Setup) -> str:
    """The name of the fork that begins. ConsoleError if its process cannot be started."""
    folder = console.folder
    name = folder.new_name(f"{setup.strategy or 'run'}-again")
    setup.write(folder.beside(name, SETUP))
    arguments = (*fork_arguments(setup, folder.trace(setup.of)), "--trace", str(folder.trace(name)), "--no-color")
    try:
        console.children.start(name, arguments, folder.beside(name, OUTPUT))
    except ConsoleError:
        folder.beside(name, SETUP).unlink()
        folder.beside(name, OUTPUT).unlink(missing_ok=True)
        raise
    return name


def _page(console: Console, plan: ForkPlan, status: int = 200) -> Response:
    command = "" if plan.mistakes else typed_fork(plan.setup, console.folder.trace(plan.name))
    return console.page("run_again.html.j2", status, plan=plan, command=command, WAS=WAS)


ROUTES = (Route("/runs/{name}/again", form), Route("/runs/{name}/again", submit, methods=["POST"]))
