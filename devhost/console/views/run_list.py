"""`/`: the runs of the folder; `/delete`: removes some of them from it."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from devhost.console.listing.deleting import DELETED, delete_run
from devhost.console.listing.found import Wanted, find
from devhost.console.listing.summary import STATES
from devhost.console.runs.folder import RunFolder
from devhost.console.views.console import Console, console_of

PATIENCE_SECONDS = 0.5
"""So long a page waits for traces that were not read yet. The list is asked for every two seconds."""


def list_of_runs(request: Request) -> Response:
    return _listed(request, "runs.html.j2")


def part_of_list(request: Request) -> Response:
    """What changes on the page as runs begin and end."""
    return _listed(request, "runs_found.html.j2")


def _listed(request: Request, template: str) -> Response:
    console = console_of(request)
    found = find(console.index.look(PATIENCE_SECONDS), Wanted.of(request.query_params))
    return console.page(template, found=found, states=STATES, folder=console.folder.path.resolve())


def ask_to_delete(request: Request) -> Response:
    return _page_of_deletion(console_of(request), request.query_params.getlist("run"))


async def delete(request: Request) -> Response:
    console = console_of(request)
    async with request.form() as form:
        names = [str(name) for name in form.getlist("run")]
    await run_in_threadpool(_delete, console.folder, names)
    return RedirectResponse("/", 303)


def _delete(folder: RunFolder, names: list[str]) -> None:
    """None of them if one is not there."""
    for name in names:
        folder.trace(name)
    for name in names:
        delete_run(folder, name)


def _page_of_deletion(console: Console, names: list[str]) -> Response:
    for name in names:
        console.folder.trace(name)
    chosen = console.index.only(names)
    return console.page("delete.html.j2", chosen=chosen, deleted=console.folder.path.resolve() / DELETED)


ROUTES = (
    Route("/", list_of_runs),
    Route("/list", part_of_list),
    Route("/delete", ask_to_delete),
    Route("/delete", delete, methods=["POST"]),
)
